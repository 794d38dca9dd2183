#!/usr/bin/env python3
"""How much a program has to know of libhone, by the public headers alone.

    scripts/surface.py [--root DIR]            prints what is wrong; leaves with 0 when nothing is, 1 else
    scripts/surface.py [--root DIR] --count    prints the exported functions of each tier of hone/hone.h

The first tier is what the headers of section 1 of hone/hone.h declare, with all that they include. Each exported function has a
client: docs/decisions/public-surface.md says why. Visits, gets and releases have one shape each: docs/compatibility.md has them.
"""
import argparse
import pathlib
import re
import sys

# Number of exported functions of the first tier. The tier may not grow, and a larger number is refused, so that it only falls.
FIRST_TIER = 59

# Clients of exported functions besides tests: programs, the command, the Python package, and libraries that use the public headers.
CLIENTS = ["examples", "cli", "python", "src/xla_ffi", "src/tvm_ffi", "include/hone/hone.hpp"]

# Functions that no client calls, and why they are exported.
WITHOUT_CLIENT = {
    "hone_call_dtype": "models of kernels ask it: docs/write-a-kernel.md",
    "hone_kernel_run": "what ejkernel's registry gave is called: docs/from-ejkernel.md",
    "hone_record_invocation": "ejkernel's record_invocation: docs/from-ejkernel.md",
}


def code(text):
    return re.sub(r"//[^\n]*", "", text)


def includes(text):
    return re.findall(r'^#include "(hone/\w+\.h)"', text, re.M)


def tiers(root):
    """The headers of each section of hone/hone.h."""
    sections = re.split(r"^// \d\. ", (root / "include/hone/hone.h").read_text(), flags=re.M)[1:]
    return [includes(section) for section in sections]


def reached(root, headers):
    out, rest = set(), list(headers)
    while rest:
        header = rest.pop()
        if header not in out:
            out.add(header)
            rest += includes((root / "include" / header).read_text())
    return out


def functions(root, headers):
    out = set()
    for header in headers:
        text = code((root / "include" / header).read_text())
        out |= set(re.findall(r"\bHONE_API\b[^;(]*?\b(hone_\w+)\(", text))
    return out


def called(root):
    """Names of hone's in the code of clients, those of inline functions of the headers as the exported ones that they call."""
    names = set()
    for place in CLIENTS:
        path = root / place
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.suffix in (".c", ".h", ".cpp", ".hpp", ".py", ".pyi", ".rs"):
                names |= set(re.findall(r"\bhone_\w+", code(file.read_text(errors="replace"))))
    for header in (root / "include/hone").glob("*.h"):
        for name, body in re.findall(r"\bstatic inline [^;{]*?\b(hone_\w+)\([^;{]*\)\n\{(.*?)^\}", header.read_text(), re.M | re.S):
            if name in names or header.name == "args.h":
                names |= set(re.findall(r"\bhone_\w+", code(body)))
    return names


# Patterns of declarations without line breaks: callbacks of visits, and functions that free memory.
VISIT = re.compile(r"\bbool \(\*visit\)\(void \*ctx, const \w+ \*\w+\)")
RELEASE = re.compile(r"void hone_\w+\(\s*(?:const )?\w+ \*{2,}\w+\)")


def misshapen(root):
    """Functions that visit, give back or get in another way than the others."""
    out = []
    for header in sorted((root / "include/hone").glob("*.h")):
        for text in re.findall(r"\bHONE_API\b([^;{]*);", code(header.read_text())):
            text = " ".join(text.split()).replace("HONE_MUST_CHECK ", "")
            name = re.search(r"\bhone_\w+(?=\()", text)
            if name is None:
                continue
            name = name.group()
            if "(*visit)" in text and not (VISIT.search(text) and text.startswith("hone_status ") and text.endswith("hone_error *err)")):
                out.append(f"{header.name}: {name}: a visit is bool (*visit)(void *ctx, const RECORD *record), void *ctx, and hone_error *err comes last")
            if re.search(r"_(release|close|end)$", name) and not RELEASE.fullmatch(text):
                out.append(f"{header.name}: {name}: what gives something back takes its address alone, and sets it to NULL")
            if re.search(r"_(free|destroy|delete|dispose)$", name):
                out.append(f"{header.name}: {name}: it is hone_..._release, or hone_..._close of what was opened")
            if re.search(r"_get(_\w+)?$", name) and not text.startswith("hone_status "):
                out.append(f"{header.name}: {name}: a get returns a status; what returns a pointer or NULL is a find")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    known, counts = set(), []
    for headers in tiers(options.root):
        there = functions(options.root, reached(options.root, headers)) - known
        known |= there
        counts.append(len(there))
    if options.count:
        print(*counts)
        return
    faults = misshapen(options.root)
    if counts[0] > FIRST_TIER:
        faults.append(f"the first tier of hone/hone.h has {counts[0]} functions, and had {FIRST_TIER}: declare what an application does without"
                      " in a header of hone/admin.h")
    elif counts[0] < FIRST_TIER:
        faults.append(f"the first tier of hone/hone.h has {counts[0]} functions: write that in place of {FIRST_TIER} in scripts/surface.py")
    lonely = known - called(options.root)
    faults += [f"{name} is called by tests alone: declare it in a header of src/" for name in sorted(lonely - WITHOUT_CLIENT.keys())]
    faults += [f"{name} has a client, or is gone: take it out of WITHOUT_CLIENT in scripts/surface.py" for name in sorted(WITHOUT_CLIENT.keys() - lonely)]
    sys.exit("\n".join(faults) or 0)


main()
