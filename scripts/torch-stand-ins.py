#!/usr/bin/env python3
"""Makes torch of PyPI importable without 4 GB of CUDA's libraries, for tests on the CPU: libraries that have the names and symbols
which torch's own libraries ask the loader for, and no code. A program without a GPU calls none of them; one that does stops.

    scripts/torch-stand-ins.py FOLDER      the folder that torch was installed into; they go to nvidia/cu13/lib there

The real runtime of CUDA (nvidia-cuda-runtime, 2 MB), which torch asks how many GPUs there are, is to be there already.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

# Libraries of Debian's C++ and Fortran runtimes, and the driver, which must not be replaced by a stand-in.
SYSTEM = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libstdc++.so", "libgcc_s.so", "ld-linux", "libquadmath.so",
          "libz.so", "libcuda.so", "libcudart.so")


def read(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Wanted:
    """What libraries ask for: names of libraries, and symbols by library and version."""

    def __init__(self, folder):
        files = sorted(folder.glob("*.so*"))
        own, defined, plain = {file.name for file in files}, set(), set()
        self.libraries, self.symbols = set(), collections.defaultdict(lambda: collections.defaultdict(set))
        for file in files:
            self.libraries |= set(re.findall(r"NEEDED.*\[(.*)\]", read("readelf", "-d", file)))
            of_version = self.versions(file)
            for line in read("nm", "-D", file).splitlines():
                *_, kind, symbol = line.split()
                name, _, version = symbol.replace("@@", "@").partition("@")
                if kind not in "UwWvV":
                    defined.add(name)
                elif kind == "U" and version in of_version:
                    self.symbols[of_version[version]][version].add(name)
                elif kind == "U" and not version:
                    plain.add(name)
        self.libraries = {name for name in self.libraries - own if not name.startswith(SYSTEM)}
        # Nothing records which library defines an unversioned symbol, so any of them may define it.
        self.symbols[min(self.libraries)][""] |= plain - defined

    @staticmethod
    def versions(file):
        """From versions of symbols to the library that is to have them."""
        found, library = {}, None
        for line in read("readelf", "-V", "-W", file).splitlines():
            if match := re.search(r"File: (\S+)", line):
                library = match[1]
            elif (match := re.search(r"Name: (\S+)\s+Flags", line)) and library:
                found[match[1]] = library
        return found


def make(library, symbols, folder, work):
    names = sorted(set().union(*symbols.values())) if symbols else []
    code, versions = work / f"{library}.c", work / f"{library}.map"
    code.write_text("".join(f"void {name}(void);\nvoid {name}(void) {{ __builtin_trap(); }}\n" for name in names))
    versions.write_text("".join(f"{version} {{ global: {'; '.join(sorted(of))}; }};\n" for version, of in symbols.items() if version and of))
    script = [f"-Wl,--version-script={versions}"] if versions.stat().st_size else []
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{library}", "-o", folder / library, code, *script],
                   check=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    target = folder / "nvidia" / "cu13" / "lib"
    wanted = Wanted(folder / "torch" / "lib")
    with tempfile.TemporaryDirectory() as work:
        for library in sorted(wanted.libraries):
            make(library, wanted.symbols[library], target, pathlib.Path(work))


main()
