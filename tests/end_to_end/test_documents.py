"""The documents say what is there: links lead somewhere, and the command's pages agree with the command."""

import pathlib
import re
import shlex
import shutil
import subprocess

from support import BUILD, COMMAND, DATA, CommandTest

ROOT = DATA.parent


def words_of_help(text):
    return re.findall(r"(?m)^  (--[a-z-]+|[a-z]+) ", text)


class Documents(CommandTest):
    def test_links_lead_somewhere(self):
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md")),
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

    def test_zsh_and_fish_complete_what_bash_does(self):
        for shell, completed in (("zsh", self.completed_by_zsh), ("fish", self.completed_by_fish)):
            if shutil.which(shell) is None:
                continue  # a shell that is not here is nobody's
            for words in (("exp",), ("tune", "--pat"), ("list", "rms"), ("store", "re"), ("pack", "ch"), ("help", "env"),
                          ("tune", "--kernel", "por"), ("tune", "--platform", "nat"), ("tune", "--store", "sq")):
                with self.subTest(shell, words=words):
                    self.assertEqual(sorted(completed(*words)), sorted(self.completed(*words)))
                    self.assertNotEqual(completed(*words), [])

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
