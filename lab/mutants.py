"""What lab/mutate changes: every comparison, number and check of the C files of a module, in an order drawn from a seed.

A comparison takes or loses its edge, `<` and `<=`, or is turned round, `==` and `!=`. A whole number becomes one more, a fraction
ten times as much, a mask another in its lowest bit. Of a check `&&` becomes `||`, a `!` goes, or the whole `if` is never true.
Left alone: comments, texts, the preprocessor, assertions, sizes of arrays, and `{0}`.
"""

import hashlib
import random
import re

TOKEN = re.compile(r"""
    (?P<skip>//[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ \t]*\#(?:\\\n|[^\n])*
        | \b(?:hone_assert|static_assert|_Static_assert)\b[^;]*; | \b[A-Za-z_]\w*\s*\[\d+\]\s*(?=[;=,)]) | \{0\})
  | (?P<number>(?<![\w.])(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[uUlLfF]*(?![\w.]))
  | (?P<shift><<=?|>>=?|->) | (?P<compare>[<>=!]=|<|>) | (?P<logic>&&|\|\|) | (?P<not>!)
  | \bif\s*(?P<open>\()
""", re.X | re.M | re.S)

COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def changed_number(text):
    """Ten times a fraction, one more than a whole number; of a mask the lowest bit."""
    digits = re.match(r"0[xX][0-9a-fA-F]+|[0-9.eE+-]+", text)[0]
    rest = text[len(digits):]
    if digits[:2] in ("0x", "0X"):
        return f"{hex(int(digits, 16) ^ 1)}{rest}"
    if re.search(r"[.eE]", digits):
        value = float(digits)
        return f"{value * 10 if value else 1.0!r}{rest}"
    return f"{int(digits, 8 if re.fullmatch('0[0-7]+', digits) else 10) + 1}{rest}"


def closing(text, start):
    """Where the parenthesis that opens at start is closed."""
    depth = 0
    for token in re.finditer(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[()]", text[start:]):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return start + token.start()
    return None


def changes(text):
    """Every (kind, start, end, replacement) that one mutant makes in a C file."""
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        start, end = match.span(kind)
        if kind == "compare":
            yield "comparison", start, end, COMPARE[match[kind]]
        elif kind == "logic":
            yield "check", start, end, "||" if match[kind] == "&&" else "&&"
        elif kind == "not":
            yield "check", start, end, ""
        elif kind == "number":
            yield "number", start, end, changed_number(match[kind])
        elif kind == "open" and closing(text, start) is not None:
            close = closing(text, start)
            yield "check", start, close + 1, f"(0 && {text[start:close + 1]})"


class Mutant:
    def __init__(self, module, file, text, kind, start, end, new):
        self.module, self.file, self.kind = module, file, kind
        self.start, self.end, self.new = start, end, new
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        self.line = text.count("\n", 0, start) + 1
        self.before = text[first:last].strip()
        self.after = (text[first:start] + new + text[end:last]).strip()
        nth = text.count(self.before, 0, start)  # of lines that read alike
        self.id = hashlib.sha256(f"{file}|{nth}|{self.before}|{self.after}".encode()).hexdigest()[:12]

    def record(self):
        return {key: getattr(self, key) for key in ("id", "module", "file", "line", "kind", "before", "after")}


def mutants(tree, modules, seed):
    """All mutants of the modules in a random order: the modules take turns, and in each the kinds."""
    turns = []
    for module in modules:
        by_kind = {}
        for path in sorted((tree / "src" / module).rglob("*.c")):
            text = path.read_text()
            for change in changes(text):
                mutant = Mutant(module, path.relative_to(tree).as_posix(), text, *change)
                by_kind.setdefault(mutant.kind, []).append(mutant)
        chance = random.Random(f"{seed} {module}")
        for found in by_kind.values():
            chance.shuffle(found)
        turns.append([kind[i] for i in range(max(map(len, by_kind.values()), default=0))
                      for _, kind in sorted(by_kind.items()) if i < len(kind)])
    return [turn[i] for i in range(max(map(len, turns), default=0)) for turn in turns if i < len(turn)]
