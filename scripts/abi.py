#!/usr/bin/env python3
"""What programs that are linked with libhone.so rely on, as text: functions with their types, structs with sizes and offsets,
enumerators with values. docs/compatibility.md says what is promised of it.

    scripts/abi.py [--root DIR] [--library FILE]            prints it
    scripts/abi.py [--root DIR] [--library FILE] --check    compares it with abi.txt; leaves with 1 when they differ

Types are read from the debug information of one file that includes all public headers, by pahole and readelf; functions from the
preprocessed headers. Where a library is given, it must export these and no others, all of one version.
"""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MARK = '__attribute__((visibility("default")))'
TITLE = """# The binary interface of libhone.so on 64-bit Linux, written by scripts/check --update-abi and checked by scripts/check abi.
# The version of its symbols; struct NAME SIZE, then OFFSET SIZE FIELD; enumerators with their values; functions.
# docs/compatibility.md says what may change.
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    if done.returncode:
        sys.exit(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def compile_headers(root, folder):
    source, target = folder / "all.c", folder / "all.o"
    headers = sorted(path.name for path in (root / "include/hone").glob("*.h"))
    source.write_text("".join(f'#include "hone/{name}"\n' for name in headers))
    compiler = os.environ.get("CC", "cc").split()
    # The debug information also contains unused types.
    whole = "-fstandalone-debug" if "clang" in run(*compiler, "--version") else "-fno-eliminate-unused-debug-types"
    flags = ["-std=c11", f"-I{root / 'include'}", str(source)]
    run(*compiler, "-g", whole, "-c", "-o", str(target), *flags)
    return target, run(*compiler, "-E", "-P", *flags)


def structs(target):
    """Lines of each struct and union of hone's: pahole writes `type name; /* offset size */`."""
    out = {}
    body = None
    for line in run("pahole", str(target)).splitlines():
        opened = re.fullmatch(r"(?:struct|union) (hone_\w+) \{", line)
        if opened:
            body = []
            name = opened[1]
        if body is None:
            continue
        field = re.fullmatch(r"\t+(.*?);\s*/\*\s*(\d+)\s+(\d+) \*/", line)
        size = re.match(r"\t/\* size: (\d+)", line)
        if field:
            text = re.sub(r"\s+", " ", field[1]).strip().replace("* (", "*(")
            body.append(f"  {field[2]:>4} {field[3]:>4} {text}")
        elif size:
            out[name] = [f"struct {name} {size[1]}", *body]
            body = None
    return [line for name in sorted(out) for line in out[name]]


def enumerators(target):
    """NAME = VALUE of every enumerator of hone's."""
    out = {}
    name = None
    for line in run("readelf", "--debug-dump=info", str(target)).splitlines():
        if "Abbrev Number" in line:
            name = "" if "DW_TAG_enumerator)" in line else None
        elif name is not None and "DW_AT_name" in line:
            name = line.split()[-1]
        elif name and "DW_AT_const_value" in line:
            out[name] = int(line.split()[-1], 0)
    return [f"{name} = {value}" for name, value in sorted(out.items()) if name.startswith("HONE_")]


def functions(text):
    """{name: prototype} of what is marked as exported."""
    out = {}
    for piece in text.split(MARK)[1:]:
        prototype = re.sub(r"__attribute__\s*\(\(\w+\)\)", "", piece.split(";", 1)[0])
        prototype = re.sub(r"\s+", " ", prototype).strip()
        prototype = re.sub(r"\(\s+", "(", prototype)
        out[re.search(r"\b(hone_\w+)\(", prototype)[1]] = prototype
    return out


def symbols(library):
    """{name: version} of what a library exports; the name of a version is none."""
    out = {}
    for line in run("nm", "-D", "--defined-only", str(library)).splitlines():
        _, kind, symbol = line.split()
        name, _, version = symbol.partition("@@")
        if kind != "A":
            out[name] = version
    return out


def version(root):
    """The version that symbols bear, as src/CMakeLists.txt makes it."""
    major, minor = re.search(r"project\(hone VERSION (\d+)\.(\d+)", (root / "CMakeLists.txt").read_text()).groups()
    return f"HONE_{major}.{minor}" if major == "0" else f"HONE_{major}"


def compare(declared, exported, expected):
    faults = [f"{name} is declared and not exported" for name in sorted(declared.keys() - exported.keys())]
    faults += [f"{name} is exported and not declared" for name in sorted(exported.keys() - declared.keys())]
    faults += [f"{name} has the version '{there}', expected {expected}" for name, there in exported.items() if there != expected]
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for tool, package in (("pahole", "dwarves"), ("readelf", "binutils")):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt-get install {package}")
    with tempfile.TemporaryDirectory() as folder:
        target, text = compile_headers(options.root, pathlib.Path(folder))
        declared = functions(text)
        lines = [f"version {version(options.root)}", "", *structs(target), "", *enumerators(target), "", *(declared[name] for name in sorted(declared))]
    faults = compare(declared, symbols(options.library), version(options.root)) if options.library else []
    if faults:
        sys.exit("\n".join(faults))
    written = TITLE + "\n".join(lines) + "\n"
    if not options.check:
        sys.stdout.write(written)
        return
    file = options.root / "abi.txt"
    there = file.read_text() if file.exists() else ""
    difference = list(difflib.unified_diff(there.splitlines(), written.splitlines(), "abi.txt", "today", n=0, lineterm=""))
    if difference:
        sys.exit("\n".join(line for line in difference[2:] if not line.startswith("@@")))


main()
