"""Makes stand-ins for the C library, which a wheel is linked with: they have no code, and of each symbol an older version.

    stubs.py COMPILER MINOR FOLDER

The linker binds a program to the newest version of each symbol, so that one that is linked on Debian 12 asks for glibc 2.34 to
call pthread_create. The older versions are still in the library, for the programs that were linked with them. A stand-in has the
newest up to 2.MINOR of each symbol; of those that came later the first there was, and then the wheel's tag tells.
"""

import pathlib
import re
import subprocess
import sys

WITH_SYMBOLS = ("libc.so.6", "libm.so.6")
# Since 2.34 all that these had is in libc; before that they have to be loaded.
EMPTY = ("libpthread.so.0", "libdl.so.2", "librt.so.1")
SYMBOL = re.compile(r": (\w+) +(\d+) (FUNC|IFUNC|OBJECT) +(GLOBAL|WEAK) +DEFAULT +\d+ (\w+)(@@?)(GLIBC_2[\d.]+)$", re.M)


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def number(version):
    return tuple(int(part) for part in version.removeprefix("GLIBC_").split("."))


def read(library):
    """Of each symbol that a program can be linked with: where it is, its size, type and binding; and all its versions."""
    symbols, versions = {}, {}
    for place, size, kind, binding, name, is_default, version in SYMBOL.findall(run("readelf", "--dyn-syms", "--wide", library)):
        versions.setdefault(name, []).append(version)
        if is_default == "@@":
            symbols[name] = place, int(size), kind, binding
    return symbols, versions


def version_script(symbols, versions, newest):
    nodes = {}
    for name in symbols:
        fitting = [version for version in versions[name] if number(version) <= newest]
        version = max(fitting, key=number) if fitting else min(versions[name], key=number)
        nodes.setdefault(version, []).append(name)
    return "".join(f"{version} {{ {'; '.join(names)}; }};\n" for version, names in nodes.items()) or "{ local: *; };"


def assembly(symbols):
    """Variables with two names stay one: a program may have a copy of it, which the library is to find under each."""
    places = {}
    for name, (place, size, kind, binding) in symbols.items():
        places.setdefault((kind, place), []).append((name, size, binding))
    for (kind, _), names in places.items():
        yield ".data\n.balign 32" if kind == "OBJECT" else ".text"
        for name, size, binding in names:
            of_type = "%object" if kind == "OBJECT" else "%function"
            yield f".{'weak' if binding == 'WEAK' else 'globl'} {name}\n.type {name}, {of_type}\n.size {name}, {size}\n{name}:"
        yield f".skip {max(size for _, size, _ in names) if kind == 'OBJECT' else 1}"
    yield ""


def make(compiler, folder, name, symbols, versions, newest):
    script = folder / f"{name}.map"
    script.write_text(version_script(symbols, versions, newest))
    run(compiler, "-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script={script}", "-o", folder / name,
        "-x", "assembler", "-", input="\n".join(assembly(symbols)))


def main():
    compiler, minor, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    for name in WITH_SYMBOLS:
        make(compiler, folder, name, *read(run(compiler, f"-print-file-name={name}").strip()), (2, minor))
    for name in EMPTY:
        make(compiler, folder, name, {}, {}, (2, minor))


main()
