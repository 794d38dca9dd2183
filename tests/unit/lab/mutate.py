"""lab/mutate on a fixture: a weak test lets mutants live, a good one catches them, and a run that is repeated judges nothing twice.

    mutate.py ROOT
"""

import json
import pathlib
import subprocess
import sys
import tempfile

FIXTURE = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.22)
project(fixture C)
enable_testing()
add_library(hone_call STATIC src/call/limit.c)
foreach(name weak good)
    add_executable(test_call_${name} ${name}.c)
    target_link_libraries(test_call_${name} hone_call)
    add_test(NAME call_${name} COMMAND test_call_${name})
endforeach()
""",
    "src/call/limit.c": """int limit(int x);
int limit(int x)
{
    // With `>=` in place of `>` the answers are the same, and so is the object.
    if (x > 40) {
        return 40;
    }
    return x;
}
""",
    "weak.c": "int limit(int x);\nint main(void) { return limit(3) == 3 ? 0 : 1; }\n",
    "good.c": "int limit(int x);\nint main(void) { return limit(3) == 3 && limit(41) == 40 && limit(90) == 40 ? 0 : 1; }\n",
}


def statuses(program, root, work, test):
    """What became of each mutant with one test alone: after -> status."""
    command = [program, "--root", root, "--work", work, "--module", "call", "--tests", f"^call_{test}$"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    lines = [json.loads(line) for line in (work / "results.jsonl").open()]
    return {line["after"]: line["status"] for line in lines}, len(lines), done.stdout


def main():
    program = pathlib.Path(sys.argv[1]) / "lab/mutate"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        for name, text in FIXTURE.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        subprocess.run(["git", "-C", root, "init", "-q"], check=True)
        for test, status, summary in (("weak", "survived", "0 of 3 caught"), ("good", "caught", "3 of 3 caught")):
            work = pathlib.Path(folder) / test
            found, count, out = statuses(program, root, work, test)
            assert found == {"if (x >= 40) {": "same object", "if (x > 41) {": status, "if (0 && (x > 40)) {": status,
                             "return 41;": status}, found
            assert summary in out, out
            assert statuses(program, root, work, test)[1] == count, "a mutant was judged twice"
            assert (root / "src/call/limit.c").read_text() == FIXTURE["src/call/limit.c"], "the tree itself was changed"
    print("a weak test lets mutants live, a good one catches them")


if __name__ == "__main__":
    main()
