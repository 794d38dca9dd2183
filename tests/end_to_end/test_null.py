"""Every exported function, by the prototypes of abi.txt, given nothing: NULL, 0 and structs of zeros. It returns, whatever it returns,
what has a status says HONE_OK only where nothing is a right argument,
and a pointer that it gives is NULL or points to something.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BUILD, DATA

ROOT = DATA.parent
# Nothing is a right argument of these, as their declarations say.
FINE = {
    "hone_importer_create": "the runtime and the options are optional",
    "hone_lock_create": "the allocator is the system's",
    "hone_own_cache_open": "the options are optional",
    "hone_own_overlay_derive": "without a parent and without values it is an empty one",
    "hone_plan_failed": "gives back the status that it was given",
    "hone_runtime_open": "the options are optional",
    "hone_space_parse": "no text is the space of one config",
    "hone_store_get_place_sized": "no URL is that of a user who names no store",
}

HEAD = """#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
%s
static char room[64 << 10]; // for what a function gives
"""
MAIN = """
// The address of a member of NULL.
static int points_to_nothing(const void *given)
{
    return given != NULL && (uintptr_t)given < 1 << 16;
}

static int try(int function)
{
    switch (function) {
%s    }
    return 0;
}

// A child for each: what one crash leaves behind is nobody else's.
int main(void)
{
    static const char *const names[] = {%s};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        const pid_t child = fork();
        if (child == 0) {
            const int none = open("/dev/null", O_RDWR);
            dup2(none, 0); // a file number of 0 is one that can be read
            dup2(none, 2);
            alarm(100);
            _exit(try(i));
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) printf("%%s ends the process by signal %%d\\n", names[i], WTERMSIG(status));
        else if (WEXITSTATUS(status)) printf("%%s answers with %%d\\n", names[i], WEXITSTATUS(status));
    }
    printf("tried %%d\\n", (int)(sizeof names / sizeof *names));
    return 0;
}
"""


def prototypes():
    return re.findall(r"(?m)^(?:\w+ +)?((?:const |struct |unsigned )*\w+[ *]+(?:const \*)*)(hone_\w+)\((.*)\);?$", (ROOT / "abi.txt").read_text())


def parameters(text):
    """The parts between commas that are outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip() not in ("", "void", "...")]


def nothing(parameter, gives):
    """gives: what a function writes to is there."""
    if gives and re.search(r"\*+(out\w*|err)$", parameter):
        return "(void *)room"
    if "*" in parameter or "[" in parameter:
        return "NULL"
    if parameter.startswith("hone_allocator"):
        return "hone_allocator_system()"
    struct = re.match(r"(?:const )?(hone_(?:device|dtype|value|config|own_value))\b", parameter)
    return f"({struct[1]}){{0}}" if struct else "0"


@unittest.skipUnless(shutil.which("cc"), "no C compiler: scripts/setup build installs one")
class Nothing(unittest.TestCase):
    def tried(self, gives):
        found = prototypes()
        self.assertGreater(len(found), 200)
        cases, names = [], []
        for kind, name, text in found:
            call = f"{name}({', '.join(nothing(parameter, gives) for parameter in parameters(text))})"
            answers = kind.split() == ["hone_status"] and name not in FINE
            if answers:
                line = f"return {call} == HONE_OK;"
            elif "*" in kind:
                line = f"return points_to_nothing({call});"
            else:
                line = f"(void){call}; break;"
            cases.append(f"    case {len(names)}: {line}\n")
            names.append(f'"{name}"')
        headers = "\n".join(f'#include "hone/{path.name}"' for path in sorted((ROOT / "include" / "hone").glob("*.h")))
        options = [f"-fsanitize={os.environ['HONE_E2E_SANITIZE']}"] if os.environ.get("HONE_E2E_SANITIZE") else []
        with tempfile.TemporaryDirectory(prefix="hone-null-") as folder:
            with open(f"{folder}/null.c", "w") as file:
                file.write(HEAD % headers + MAIN % ("".join(cases), ", ".join(names)))
            subprocess.run(["cc", "-std=gnu11", "-w", *options, f"-I{ROOT}/include", f"{folder}/null.c", f"-L{BUILD}", "-lhone",
                            f"-Wl,-rpath,{BUILD.resolve()}", "-o", f"{folder}/null"], check=True)
            done = subprocess.run([f"{folder}/null"], capture_output=True, text=True, timeout=600, cwd=folder,
                                  env={**os.environ, "HONE_STORE": "none", "XDG_CACHE_HOME": folder, "HOME": folder})
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1:], [f"tried {len(names)}"], done.stderr)
        self.assertEqual(lines[:-1], [])

    def test_no_function_ends_the_process_or_says_ok(self):
        self.tried(gives=False)

    def test_nor_where_it_can_write_what_it_gives(self):
        self.tried(gives=True)


if __name__ == "__main__":
    unittest.main()
