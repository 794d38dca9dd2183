"""The folders that ELF files tell the loader to search."""

import pathlib
import struct

DYNAMIC, RPATH, RUNPATH = 6, 15, 29


def _entries(data):
    """The tags of the dynamic section, and a function from an offset to the string there."""
    sections_at, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind == DYNAMIC:
            strings = sections[link][4]
            tags = [struct.unpack_from("<qQ", data, offset + at) for at in range(0, length, 16)]
            return tags, lambda at: data[strings + at:data.index(b"\0", strings + at)].decode()
    return [], None


def run_paths(file):
    """Every entry of RPATH and RUNPATH, of a 64-bit little-endian ELF file; None: the file is no such thing."""
    data = pathlib.Path(file).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    tags, string = _entries(data)
    return [entry for tag, value in tags if tag in (RPATH, RUNPATH) for entry in string(value).split(":")]


def unsafe(folder, passing=()):
    """How many ELF files a folder has, and those that have the loader look where the current folder decides."""
    count, found = 0, {}
    for file in sorted(pathlib.Path(folder).rglob("*")):
        if file.is_symlink() or not file.is_file() or any(part in passing for part in file.parts):
            continue
        entries = run_paths(file)
        count += entries is not None
        wrong = [entry for entry in entries or [] if not entry.startswith(("/", "$ORIGIN"))]
        if wrong:
            found[str(file)] = entries
    return count, found
