"""The walks of docs/layout.md: each function named there stands in its file, and each calls the next. And the functions that
the page quotes, ten of them: each declaration stands in its header as it is quoted.

In a walk "a > b" says that a calls b by its name, and "a ~> b" that a reaches b by a pointer or a message: then somebody
else's code must name b. A line that begins with an arrow goes on where the line before it ended. A quote is "// FILE: sentence"
and the declaration under it.

    walks.py ROOT
"""

import glob
import os
import re
import sys

STEP = re.compile(r"(~>|>)?\s*([a-z_0-9]+)")
LINE = re.compile(r"^(\S+\.[ch])\s+(\S.*)$")
QUOTE = re.compile(r"^// (\S+\.h): \S.*\n([^;/]+;)$", re.M)
QUOTED = 10


def walks(page):
    """Every (number, file, [(arrow, function)...]) of the fenced blocks under the heading of the walks."""
    inside = fenced = False
    for number, line in enumerate(open(page, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.startswith("## "):
            inside = "walk" in line.lower()
        if inside and line.startswith("```"):
            fenced = not fenced
            continue
        found = LINE.match(line) if inside and fenced else None
        if found:
            steps = [(arrow or "", name) for arrow, name in STEP.findall(found[2].split("  ")[0])]
            yield number, found[1], steps


def bodies(text):
    """Functions defined in a C file and their text: the layout puts a definition's braces in the first column."""
    found = {}
    for block in re.finditer(r"^[A-Za-z_][^;{}=]*?\b([a-z_0-9]+)\([^;{}]*\)\s*\n\{\n(.*?)^\}", text, re.M | re.S):
        found[block[1]] = block[2]
    return found


def check_quotes(root):
    """Faults of the declarations that the page quotes from headers."""
    text = open(os.path.join(root, "docs/layout.md"), encoding="utf-8").read()
    section = re.search(r"^## Ten functions.*?(?=^## |\Z)", text, re.M | re.S)
    quotes = QUOTE.findall(section[0]) if section else []
    faults = [] if len(quotes) == QUOTED else [f"docs/layout.md quotes {len(quotes)} functions, not {QUOTED}"]
    for path, declaration in quotes:
        header = os.path.join(root, path)
        found = os.path.isfile(header) and f"\n{declaration}\n" in open(header, encoding="utf-8").read()
        if not found:
            faults.append(f"docs/layout.md: {path} does not declare '{' '.join(declaration.split())}'")
    return faults


def check(root):
    faults = check_quotes(root)
    count = 0
    texts = {}
    for pattern in ("src/**/*.[ch]", "cli/*.[ch]"):
        for path in glob.glob(os.path.join(root, pattern), recursive=True):
            texts[os.path.relpath(path, root)] = open(path, encoding="utf-8").read()
    functions = {path: bodies(text) for path, text in texts.items()}
    before = None  # body of the function that the last step named
    for number, path, steps in walks(os.path.join(root, "docs/layout.md")):
        where = f"docs/layout.md:{number}"
        if path not in texts:
            faults.append(f"{where}: there is no file {path}")
            continue
        for arrow, name in steps:
            count += 1
            body = functions[path].get(name)
            if body is None:
                faults.append(f"{where}: {path} does not define {name}")
            word = re.compile(rf"\b{name}\b")
            if arrow == ">" and before is not None and not re.search(rf"\b{name}\(", before):
                faults.append(f"{where}: the function before {name} does not call it")
            # A definition or a prototype begins in the first column; whatever else names the function uses it.
            if arrow == "~>" and not any(
                word.search(line) and not re.match(rf"\S.*\b{name}\(", line)
                for text in texts.values()
                for line in text.splitlines()
            ):
                faults.append(f"{where}: nothing uses {name}")
            if not arrow and before is None and count > 1:
                faults.append(f"{where}: {name} begins a walk after one that could not be read")
            before = body
    if count == 0:
        faults.append("docs/layout.md has no walk")
    return count, faults


def main():
    count, faults = check(sys.argv[1])
    for fault in faults:
        print(fault)
    print(f"{count} steps, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
