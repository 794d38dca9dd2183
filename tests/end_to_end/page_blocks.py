"""The fenced blocks of README and docs/: what each is, how it is marked, and what it says on a command's output."""

import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "lab").rglob("*.md"))]

COMMANDS = ("sh", "console")  # lines that are commands; commands behind "$ ", with what they print
OUTPUT = "output"  # what the last commands before it print
PROGRAMS = ("c", "cpp", "cuda", "rust", "python", "json", "cmake")  # end_to_end_listings parses these, and names who runs them
TEXT = "text"  # a grammar, a form or a drawing: nothing that a program prints or reads as it is
KINDS = (*COMMANDS, OUTPUT, *PROGRAMS, TEXT)

DAY = r"\d{4}-\d\d-\d\d"
MARK = re.compile(rf"<!-- (?:(machine|run): (\S.*), ({DAY})|(test): (\w+)) -->")


class Block:
    def __init__(self, page, line, kind, text, comment):
        self.page, self.line, self.kind, self.text, self.comment = page, line, kind, text, comment
        found = MARK.fullmatch(comment or "")
        self.mark = (found[1] or found[4]) if found else None  # machine, run or test
        self.test = found[5] if found else None
        self.name = f"{page.name}:{line}"

    def commands(self):
        """Each command with the lines that the page shows below it."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        if self.kind == "sh":
            return [(line.strip(), []) for line in lines if line.strip() and not line.lstrip().startswith("#")]
        found = []
        for line in lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
        return found

    def shown(self):
        """Every line that is a program's output."""
        if self.kind == OUTPUT:
            return self.text.splitlines()
        return [line for _, lines in self.commands() for line in lines] if self.kind == "console" else []


def blocks_of(page):
    """A mark is a comment, alone on the line before the block."""
    found, lines, begin = [], page.read_text().splitlines(), None
    for number, line in enumerate(lines):
        fence = re.fullmatch(r" *```(\S*)", line)
        if fence is None:
            continue
        if begin is None:
            begin = number
            kind = fence[1]
            continue
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        text = "".join(row[indent:] + "\n" for row in lines[begin + 1:number])
        before = lines[begin - 1].strip() if begin else ""
        found.append(Block(page, begin + 1, kind, text, before if before.startswith("<!--") else None))
        begin = None
    if begin is not None:
        raise AssertionError(f"{page}:{begin + 1}: a block without an end")
    return found


def words_of_sources():
    """Every word of what hone is made of."""
    found = set()
    for folder in ("cli", "src", "python/hone", "scripts"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in ("", ".c", ".h", ".py"):
                found |= set(re.findall(r"[A-Za-z_]+", path.read_text(errors="replace")))
    return found


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def phrases(line, names):
    """What of a line is the same on each machine and day: its runs of words between figures, kernels and configs."""
    found, run = [], []
    for word in [*re.sub(r"[()]", " ", re.sub(r"\{[^}]*\}", " 0 ", line)).split(), "0"]:
        bare = word.strip(",;:.")
        varies = not re.fullmatch(r"[A-Za-z']+(/[A-Za-z]+)?", bare) or bare in names or bare in ("ns", "us", "ms")
        if not varies:
            run.append(bare)
        if varies or word[-1] in ",;:":
            found.append(" ".join(run))
            run = []
    return [text for text in found if " " in text]


def is_measured(command):
    """Whether what a command prints holds figures of the machine that it ran on."""
    words = [word for word in shlex.split(command, comments=True) if not re.fullmatch(r"[A-Z_]+=.*", word)]
    return bool({"tune", "bench", "ab", "explain", "run", "stats", "devices", "doctor", "./program", "hone.lock"} & set(words))


def pattern_of(line):
    """A line with "..." for what is left out."""
    return ".*".join(re.escape(squeezed(part)) for part in line.split("..."))
