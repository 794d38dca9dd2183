"""The documents say what is there: links lead somewhere, and the command's pages agree with the command."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import page_blocks
from support import BUILD, COMMAND, DATA, CommandTest

ROOT = DATA.parent


def need(test, there, why):
    """What a test cannot do without, which HONE_REQUIRE asks for."""
    if not there and os.environ.get("HONE_REQUIRE"):
        test.fail(why)
    if not there:
        test.skipTest(why)


def words_of_help(text):
    return re.findall(r"(?m)^  (--[a-z-]+|[a-z]+) ", text)


class Documents(CommandTest):
    def test_links_lead_somewhere(self):
        pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md")),
                 *sorted((ROOT / "lab").rglob("*.md"))]
        for page in pages:
            for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)]*)?\)", page.read_text()):
                if target.startswith("http"):
                    continue
                aim = page.parent / target if target else page
                with self.subTest(f"{page.name}: {target}{anchor}"):
                    self.assertTrue(aim.exists())
                    if anchor and aim.suffix == ".md":
                        heads = re.findall(r"(?m)^#+ (.*)$", aim.read_text())
                        slugs = [re.sub(r"[^a-z0-9 -]", "", head.lower()).strip().replace(" ", "-") for head in heads]
                        self.assertIn(anchor[1:], slugs)

    def test_pages_name_every_command_and_option(self):
        man = (ROOT / "docs" / "man" / "hone.1").read_text()
        page = (ROOT / "docs" / "cli.md").read_text()
        for command in words_of_help(self.hone("help").out):
            self.assertIn(f"Cm {command}", man)
            if command != "help":
                self.assertIn(f"| `{command}", page)
            for word in words_of_help(self.hone("help", command).out):
                if word.startswith("--"):
                    self.assertIn(f"Fl -{word[2:]}", man, f"hone {command} {word}")
                else:
                    self.assertRegex(man, rf"Cm {command} (Cm )?{word}\b|Cm {word}\b", f"hone {command} {word}")

    def test_a_page_of_help_has_one_column_for_what_its_words_mean(self):
        for command in words_of_help(self.hone("help").out):
            page = self.hone("help", command, env={"COLUMNS": "400"}).out
            for kind in (r"--[a-z0-9-]+", r"[a-z]+"):  # options; verbs
                rows = re.findall(rf"(?m)^  ({kind}(?: [^ ]+)* *?  )\S", page)
                with self.subTest(command, kind=kind):
                    self.assertLessEqual(len({len(row) for row in rows}), 1, rows)

    def commands_of_pages(self):
        """Every line of a code block of README and docs/ that calls the command: page, words."""
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for block in re.findall(r"(?ms)^ *```[a-z]*\n(.*?)^ *```", page.read_text()):
                for line in block.replace("\\\n", " ").splitlines():
                    found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*hone ([a-z].*)$", line.strip())
                    if found is None:
                        continue
                    try:
                        words = shlex.split(found[1].split(" | ")[0], comments=True)
                    except ValueError:  # goes on in the next line
                        continue
                    yield page.name, words[:words.index("--")] if "--" in words else words

    def test_commands_of_pages_are_ones_that_there_are(self):
        options, calls = {}, set()
        for page, (name, *words) in self.commands_of_pages():
            with self.subTest(page=page, command=" ".join([name, *words])):
                if name not in options:
                    options[name] = set(re.findall(r"(?m)^  (--[a-z0-9-]+)", self.hone("help", name).out)) | {"--help"}
                for word in words:
                    if word.startswith("--"):
                        self.assertIn(word.split("=")[0], options[name])
                    elif re.fullmatch(r"[a-z_]+\([^@]*\)", word) and "..." not in word and "--pack" not in words and "--program" not in words:
                        calls.add((page, word))
        algorithms = {row["name"] for row in self.hone("list", "--json").json["algorithms"]}
        for page, call in sorted(calls):
            if call.split("(")[0] in algorithms and page != "signatures.md":  # which shows what is refused
                with self.subTest(page=page, call=call):
                    self.assertRegex(self.hone("key", call, "--json").json["key"], "^[0-9a-f]{16}$")
        self.assertGreater(len(calls), 10)

    def test_targets_of_figures_name_a_direction(self):
        for name in ("benchmarks.md", "gpu.md"):
            table = (ROOT / "docs" / name).read_text().partition("\n| question | target |")[2].partition("\n\n")[0]
            targets = [row.split("|")[2].strip() for row in table.splitlines()[2:]]
            self.assertGreater(len(targets), 8)
            for target in filter(None, targets):
                self.assertRegex(target, "^(a mean of |prefill )?(at most|at least|never|0 of) ?", name)

    def test_pages_name_every_variable_that_is_read(self):
        man = (ROOT / "docs" / "man" / "hone.1").read_text()
        page = (ROOT / "docs" / "cli.md").read_text()
        for name, meaning in re.findall(r"(?m)^(HONE_\w+) +(.*)$", self.hone("help", "environment").out):
            if "not there yet" in meaning or "for the tests" in meaning:
                continue
            self.assertIn(f"Ev {name}", man)
            self.assertIn(f"`{name}`", page)

    def test_the_program_of_the_examples_can_be_read(self):
        for program in sorted((ROOT / "examples" / "programs").glob("*.mlir")):
            operations = self.hone("offline", "--list", "--json", str(program)).json["operations"]
            self.assertGreater(sum(row["tunable"] for row in operations), 0)


class Completion(CommandTest):
    def completed(self, *words):
        script = f"""
            hone() {{ {COMMAND} "$@"; }}
            source {ROOT}/completions/hone.bash
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hone
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        answer = subprocess.run(["bash", "-c", script, "bash", "hone", *words], env=self.environment({}),
                                capture_output=True, text=True, timeout=300)
        self.assertEqual(answer.stderr, "")
        return answer.stdout.split()

    def completed_by_fish(self, *words):
        script = (f"function hone; {COMMAND} $argv; end\nsource {ROOT}/completions/hone.fish\n"
                  "complete -C (string join ' ' -- hone $argv)")
        answer = subprocess.run(["fish", "--no-config", "-c", script, *words], env=self.environment({}), capture_output=True,
                                text=True, timeout=300)
        self.assertEqual(answer.stderr, "")
        return [line.split("\t")[0] for line in answer.stdout.splitlines()]

    def completed_by_zsh(self, *words):
        """What compadd is handed: a terminal is asked for where more of zsh runs."""
        script = f"""
            hone() {{ {COMMAND} "$@"; }}
            compadd() {{ print -l -- $offers; }}
            _files() {{ : }}
            words=(hone "$@"); CURRENT=$#words
            source {ROOT}/completions/_hone
        """
        answer = subprocess.run(["zsh", "-f", "-c", script, "zsh", *words], env=self.environment({}), capture_output=True,
                                text=True, timeout=300)
        self.assertEqual(answer.stderr, "")
        return [line for line in answer.stdout.splitlines() if line.startswith(words[-1])]

    def completes_what_bash_does(self, shell, completed):
        need(self, shutil.which(shell), f"{shell} is not here: scripts/setup tests installs it")
        for words in (("exp",), ("tune", "--pat"), ("list", "rms"), ("store", "re"), ("pack", "ch"), ("help", "env"),
                      ("tune", "--kernel", "por"), ("tune", "--platform", "nat"), ("tune", "--store", "sq")):
            with self.subTest(words=words):
                self.assertEqual(sorted(completed(*words)), sorted(self.completed(*words)))
                self.assertNotEqual(completed(*words), [])

    def test_zsh_completes_what_bash_does(self):
        self.completes_what_bash_does("zsh", self.completed_by_zsh)

    def test_fish_completes_what_bash_does(self):
        self.completes_what_bash_does("fish", self.completed_by_fish)

    def test_commands_options_and_names_are_completed(self):
        self.assertEqual(self.completed("exp"), ["explain"])
        self.assertEqual(self.completed("tune", "--pat"), ["--patience"])
        self.assertEqual(self.completed("list", "sten"), ["stencil"])
        self.assertEqual(self.completed("store", "re"), ["remove"])
        self.assertEqual(self.completed("record", ""), ["list", "clear", "import", "export"])
        self.assertEqual(self.completed("pack", ""), ["list", "check", "new"])
        self.assertEqual(self.completed(""), [*words_of_help(self.hone("help").out), "--version", "--help"])
        self.assertIn("portable", self.completed("tune", "--kernel", "p"))
        self.assertEqual([word for word in self.completed("tune", "--kernel", "") if word.isdigit()], [])
        self.assertEqual(self.completed("tune", "--platform", "ke"), [])
        self.assertEqual(self.completed("tune", "--regime", ""), ["warm", "cold", "graph", "eager"])
        self.assertIn("environment", self.completed("help", "e"))
        self.assertEqual(self.completed("offline", "x"), [])


# What a page's commands find, as commands of a shell: files that the page speaks of, decisions that it takes for granted.
GIVEN = {
    "audit.md": """
        hone tune --kernel portable 'matmul(f32[128,128], f32[128,128])'; hone tune 'softmax(f32[128,512])'
        hone store export choices.json
        """,
    "compare-programs.md": """
        hone tune --kernel portable 'rms_norm(f32[64,1024], f32[1024])'; hone lock --lock new.lock
        sed 's|native/portable.*  #|native/reference  #|' new.lock >old.lock; hone lock --reseal --lock old.lock
        compile_program steps
        printf 'import os\\nos.execv("./steps", ["steps", "1000000"])\\n' >train.py
        """,
    "freeze-choices.md": "git init -q .; compile_program program",
    "how-a-call-is-decided.md": "hone tune 'rms_norm(f32[32,4096], f32[4096])'",
    "move-decisions.md": """
        hone tune 'rms_norm(f32[4,256], f32[256])'
        mkdir team; HONE_STORE=sqlite:team/store.db hone tune 'softmax(f32[4,256])'
        mkdir ejkernel-presistent-cache
        echo '{"cpu|cpu|mean_pooling@v1|0123456789abcdef": {"block_size": 64}}' >ejkernel-presistent-cache/pooling.json
        """,
    "reports.md": "hone tune 'rms_norm(f32[4,256], f32[256])'; cp store.db a.db; cp store.db b.db",
    "spaces.md": "printf '%s\\n' 'block_m: 16..128 *2 default 32' 'block_n: 16..128 *2' 'layout: row | col' 'where block_m * block_n <= 2048' >space.txt",
    "transfer.md": "hone tune 'rms_norm(f32[32,4096], f32[4096])'; hone tune 'rms_norm(f32[64,1024], f32[1024])'",
    "tune-a-lowered-program.md": "cp examples/programs/many.debug.mlir program.mlir",
    "tune.md": "HONE_POLICY=heuristic HONE_RECORD=1 hone run 'rms_norm(f32[4,256], f32[256])'",
    "what-was-hit.md": "hone tune 'softmax(f32[8,64])' 'rms_norm(f32[1024,4096], f32[4096])'; compile_program program -DNEAR",
}
# What a page says and this machine has otherwise: a server, a place, a kernel of some processors.
INSTEAD = {
    "move-decisions.md": [("sqlite:/mnt/team/", "sqlite:team/")],
    "reports.md": [("postgresql://team@db/hone?schema=gpu", "sqlite:b.db")],
}
if " avx512f " not in pathlib.Path("/proc/cpuinfo").read_text():
    INSTEAD["tune.md"] = [("'avx512 unroll", "'portable unroll")]
# Exit codes that are not 0, or not always, by what stands in the command. An audit's and a comparison's verdict is the machine's.
# What was merged before differs from the bundle.
CODES = {"hone tune --audit": (0, 1), "hone ab ": (0, 1), "hone store diff": (1,)}
# What only a contest with that outcome says: a runner-up, a library that is here, how sure it is.
OUTCOMES = re.compile("times as fast as|kernels were never tried|of the samples were disturbed|b is better|calls of hone.s are|core ")
# A page that cannot do without a library: whether it is here.
NEEDS = {"opencl.md": lambda: any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd"))}

# hone, with contests that are over at once.
HURRY = """#!{python}
import os, sys
words = sys.argv[1:]
limits = {{"tune": ("1", "12"), "offline": ("0.5", "6"), "bench": ("0.5", None), "ab": ("10", None)}}
still = {{"--list", "--expect-all", "--help"}} & set(words)
if words and words[0] in limits and not still:
    seconds, evals = limits[words[0]]
    at = words.index("--") if "--" in words else len(words)
    while "--seconds" in words[:at]:
        place = words.index("--seconds")
        del words[place:place + 2]
        at -= 2
    more = ["--seconds", seconds, *(["--evals", evals] if evals and "--audit" not in words else [])]
    words[1:1] = more
os.execv({command!r}, ["hone", *words])
"""

# A program that calls hone, each step a line: what the pages call ./program and train.py.
PROGRAM = """
#include <hone/hone.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static float x[1024 * 4096], weight[4096], y[1024 * 4096];
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    stop = number;
}

int main(int argc, char **argv)
{
    hone_error err;
    hone_runtime *rt = NULL;
    signal(SIGINT, on_signal);
    if (hone_runtime_open(NULL, &rt, &err) != HONE_OK) return 1;
    const hone_op *norm = hone_op_find(rt, "rms_norm", &err);
    const int steps = argc > 1 ? atoi(argv[1]) : 2;
    int64_t shape[] = {argc > 1 ? 64 : 1024, argc > 1 ? 1024 : 4096};
#ifdef NEAR
    int64_t near[] = {1000, 4096};
    hone_tensor in_near = hone_tensor_of(x, HONE_F32, 2, near), w_near = hone_tensor_of(weight, HONE_F32, 1, near + 1);
    hone_tensor out_near = hone_tensor_of(y, HONE_F32, 2, near);
    hone_value args_near[] = {hone_of_tensor(&in_near), hone_of_tensor(&w_near), hone_of_tensor(&out_near)};
    if (hone_run(norm, args_near, 3, NULL, &err) != HONE_OK) return 1;
#endif
    hone_tensor in = hone_tensor_of(x, HONE_F32, 2, shape), w = hone_tensor_of(weight, HONE_F32, 1, shape + 1);
    hone_tensor out = hone_tensor_of(y, HONE_F32, 2, shape);
    hone_value args[] = {hone_of_tensor(&in), hone_of_tensor(&w), hone_of_tensor(&out)};
    for (int i = 0; i < steps && !stop; i++) {
        if (hone_run(norm, args, 3, NULL, &err) != HONE_OK) return 1;
        printf("step %d\\n", i);
        fflush(stdout);
    }
    hone_runtime_close(&rt);
    return 0;
}
"""


class Blocks(CommandTest):
    """Every command of every page runs here, or its block is marked: <!-- test: NAME -->, who runs it; <!-- machine: WHAT, DAY -->, what it
    needs and when it ran there; <!-- run: HOW, DAY -->, when it ran, where it takes minutes or changes the machine."""

    @classmethod
    def setUpClass(cls):
        cls.blocks = {page: page_blocks.blocks_of(page) for page in page_blocks.PAGES}

    def test_every_block_says_what_it_is_and_who_ran_it(self):
        names = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("CMakeLists.txt"))
        for block in (block for blocks in self.blocks.values() for block in blocks):
            with self.subTest(block.name):
                self.assertIn(block.kind, page_blocks.KINDS, "what is this block? tests/end_to_end/page_blocks.py has the kinds")
                if block.comment is not None:
                    self.assertIsNotNone(block.mark, f"this comment is not a mark: {block.comment}")
                if block.test is not None:
                    script = ROOT / "tests" / "end_to_end" / f"test_{block.test.removeprefix('end_to_end_')}.py"
                    self.assertTrue(script.exists() or block.test.split("_")[-1] in names, f"there is no test {block.test}")
                if block.kind == page_blocks.OUTPUT and block.mark is None:
                    self.assertTrue(any(other.kind == "sh" and other.line < block.line for other in self.blocks[block.page]),
                                    "the output of which command?")

    def test_what_pages_show_are_words_that_there_are(self):
        """Also of what was printed on another machine: a column or a message that has another name now is found."""
        there = page_blocks.words_of_sources()
        for block in (block for blocks in self.blocks.values() for block in blocks):
            for word in {word for line in block.shown() for word in re.findall(r"(?<![\w/.@])[a-z]{4,}(?![\w/.(])", line)}:
                with self.subTest(block.name):
                    self.assertTrue(word in there, f"hone has no word {word}")


@unittest.skipIf(os.environ.get("HONE_E2E_SANITIZE"), "pages are of the release, and a sanitized library runs in sanitized programs alone")
@unittest.skipIf(shutil.which("cc") is None, "there is no C compiler")
class Commands(CommandTest):
    """The commands of each page, in the order of the page, in a folder and a store of their own."""

    @classmethod
    def setUpClass(cls):
        listed = subprocess.run([COMMAND, "list", "--json"], env={**os.environ, "HONE_STORE": "none"}, capture_output=True, text=True,
                                check=True).stdout
        cls.names = {row["name"] for kernels in json.loads(listed)["algorithms"] for row in kernels["kernels"]} - {"reference"}

    def place(self, page):
        """What a reader has around him: the clone's examples, hone on the path and installed headers."""
        (self.folder / "examples").symlink_to(ROOT / "examples")
        tools = self.folder / ".bin"
        tools.mkdir()
        hurried = tools / "hone"
        hurried.write_text(HURRY.format(python=sys.executable, command=COMMAND))
        hurried.chmod(0o755)
        (tools / "python3").symlink_to(sys.executable)
        self.write("program.c", PROGRAM)
        env = self.environment({"HONE_OPENCL": None} if page in NEEDS else {})
        env.update(PATH=f"{tools}:{env['PATH']}", C_INCLUDE_PATH=str(ROOT / "include"), LIBRARY_PATH=str(BUILD.resolve()),
                   LD_LIBRARY_PATH=str(BUILD.resolve()), HONE_WORKER=str(BUILD.resolve() / "hone-worker"),
                   POCL_CACHE_DIR=str(self.folder / "pocl"))
        return env

    def follow(self, page, blocks):
        """Runs all commands in one shell; returns block, command, its shown lines, exit code and output of each."""
        env = self.place(page)
        commands = [(block, command, shown) for block in blocks for command, shown in block.commands()]
        script = ['compile_program() { cc -std=c11 program.c -o "$@" -lhone; }', "set -e", GIVEN.get(page, ""), "set +e", "true"]
        for i, (_, command, _) in enumerate(commands):
            for said, here in INSTEAD.get(page, ()):
                command = command.replace(said, here)
            script.append(f"{{\n{command}\n}} >.out.{i} 2>&1\nlast=$?\necho $last >.code.{i}\n(exit $last)")
        done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=self.folder, env=env, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=900)
        for i, (block, command, shown) in enumerate(commands):
            code = self.folder / f".code.{i}"
            self.assertTrue(code.exists(), f"{page}: the shell ended before or in: {command}\n{done.stdout}{done.stderr}")
            yield block, command, shown, int(code.read_text()), (self.folder / f".out.{i}").read_text(errors="replace")

    def compare(self, where, command, shown, out):
        """The lines that a page shows below a command."""
        printed = page_blocks.squeezed(out)
        if is_message(shown):
            self.assertIn(page_blocks.squeezed(" ".join(shown)), printed, where)  # the page may break it
        elif page_blocks.is_measured(command):
            self.compare_phrases(where, shown, out)
        else:
            for line in shown:
                self.assertRegex(printed, page_blocks.pattern_of(line), where)

    def compare_phrases(self, where, shown, out):
        """Of lines with figures the words between these."""
        printed = {phrase for line in out.splitlines() for phrase in page_blocks.phrases(line, self.names)}
        for phrase in {phrase for line in shown for phrase in page_blocks.phrases(line, self.names)}:
            if not OUTCOMES.match(phrase):
                self.assertIn(phrase, printed, where)

    def runs(self, page):
        blocks = [block for block in page_blocks.blocks_of(page) if block.mark is None]
        rows = list(self.follow(page.name, [block for block in blocks if block.kind in page_blocks.COMMANDS]))
        for (block, command, shown, code, out), after in zip(rows, [*rows[1:], None]):
            where = f"{block.name}: {command}\n{out}"
            self.assertNotIn("Traceback", out)
            if after is None or after[1] != "echo $?":  # which says it
                self.assertIn(code, codes_of(command, shown), where)
            self.compare(where, command, shown, out)
        for block in blocks:
            if block.kind == page_blocks.OUTPUT:
                printed = "\n".join(row[-1] for row in rows if row[0].line < block.line)
                self.compare_phrases(block.name, block.text.splitlines(), printed)


def is_message(shown):
    return bool(shown) and shown[0].startswith("hone: ")


def codes_of(command, shown):
    if is_message(shown):
        return (1, 2, 3)
    return next((codes for part, codes in CODES.items() if part in command), (0,))


def test_of(page):
    def test(self):
        if page.name in NEEDS:
            need(self, NEEDS[page.name](), "this page's library is not here: scripts/setup tests installs it")
        self.runs(page)
    return test


for page in page_blocks.PAGES:
    if any(block.kind in page_blocks.COMMANDS and block.mark is None for block in page_blocks.blocks_of(page)):
        setattr(Commands, "test_the_commands_of_" + re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix(""))), test_of(page))
