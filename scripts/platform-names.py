#!/usr/bin/env python3
"""No platform is asked by name outside of its folder and the one table: what differs is a fact or an op of its ops.

    scripts/platform-names.py [--root DIR]     prints where a name stands; leaves with 0 when nowhere, 1 else

A name is an enumerator (HONE_CUDA), a text that is the name alone ("cuda"), or a symbol of a platform (hone_cuda_run). What
platforms there are is read from hone_platform in include/hone/device.h.
"""

import argparse
import pathlib
import re
import sys

# Where names of platforms may occur, and why. A path that ends in / is a folder.
ALLOWED = {
    "include/hone/": "programs write them: the numbers are part of the ABI",
    "src/platforms/platforms.c": "the table",
    "src/kernels/": "a kernel is written for a platform, which its row says",
    "src/xla_ffi/": "XLA's custom calls, which are no platform of hone's",
    "src/tvm_ffi/": "hone as a library for tvm-ffi, which is no platform of hone's",
    "src/call/device.c": "the device types of DLPack",
    "src/offline/prove.c": "words that ejkernel's callers write",
}

# A platform's folder may name itself, the host's platform, whose devices it may visit, and the platforms that it builds on.
HOST = "native"
FOLDERS = {
    "cute": ["cuda", "ffi"],
    "ffi": ["cuda"],
    "python": ["cuda"],
    "triton": ["cuda"],
    "xla": ["pallas", "cuda"],
}

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/")


def platforms(root):
    """The names, in lower case."""
    body = re.search(r"typedef enum hone_platform \{(.*?)\} hone_platform;", (root / "include/hone/device.h").read_text(), re.S)
    names = re.findall(r"\bHONE_(\w+)\b", COMMENT.sub("", body.group(1)))
    found = [name.lower() for name in names if not name.startswith("PLATFORM_")]
    if not found:
        sys.exit("include/hone/device.h has no hone_platform with enumerators: scripts/platform-names.py reads them there")
    return found


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_comments(text):
    """The same lines; a // inside of a text is none."""
    both = re.compile(TEXT.pattern + "|" + COMMENT.pattern)
    return both.sub(lambda found: found.group(0) if found.group(0).startswith('"') else blank(found), text)


def allowed_in(path, names):
    """The names that a file may have."""
    if any(path == place or (place.endswith("/") and path.startswith(place)) for place in ALLOWED):
        return set(names)
    parts = path.split("/")
    if parts[:2] != ["src", "platforms"] or len(parts) < 4:
        return set()
    return {parts[2], HOST, *FOLDERS.get(parts[2], [])}


def found_in(text, names):
    """(line, what stands there, name) of each."""
    some = "|".join(names)
    words = "|".join(name for name in names if name != "null")  # "null" is also a word of JSON
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        if re.match(r"\s*#\s*include\b", line):
            match = re.search(rf'"platforms/({some})/', line)
            if match:
                yield number, match.group(0) + '"', match.group(1)
            continue
        for match in re.finditer(rf'"(?:\\")?({words})(?:\\")?"', line):
            yield number, match.group(0), match.group(1)
        for match in re.finditer(rf"\bHONE_({some.upper()})\b|\bhone_({some})_\w+", TEXT.sub('""', line)):
            yield number, match.group(0), (match.group(1) or match.group(2)).lower()


def problems(root):
    names = platforms(root)
    for top in ("include", "src", "cli"):
        for path in sorted((root / top).rglob("*.[ch]")):
            name = path.relative_to(root).as_posix()
            may = allowed_in(name, names)
            for number, what, platform in found_in(path.read_text(encoding="utf-8", errors="replace"), names):
                if platform not in may:
                    yield f"{name}:{number}: {what}"


def main():
    parser = argparse.ArgumentParser(description="Where platforms are named.")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    found = list(problems(parser.parse_args().root.resolve()))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
