#!/usr/bin/env python3
"""The order of the house, checked twice: by what files include, and by the symbols of the objects that were built.

    scripts/layers.py [--root DIR] [--build DIR]      prints what is wrong; leaves with 0 when nothing is, 1 else
    scripts/layers.py --circles                       prints every circle of objects and its size

Modules, the folders of src/, use only modules before them, in the order of add_subdirectory() in CMakeLists.txt. Where the
hone_module() of a module names FOLDERS, its sub-folders use only those before them in that list; `.` is the module's own files.
The command, cli/, uses public headers and symbols alone.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# Existing cycles of object files: folder -> sizes, largest first, and the reason. One noun in several files is a valid reason.
# A cycle may not grow, and a number larger than its cycle is refused, so that the numbers only fall.
CIRCLES = {
    "call": ([5, 4], "a signature and the call that it describes; a call bound, in text, as a spec, in buckets"),
    "offline/forms": ([4], "the reader of StableHLO, whose operations hold regions of operations"),
    "platforms/cuda": ([2], "a device and what times on it"),
    "registry": ([4], "the registry: registering defers, and what is deferred is registered"),
    "runtime/links": ([3], "the chain, its link that tunes, and what keeps a contest's answer unless the chain has a better"),
    "runtime/plans": ([2], "a call and the slow way that it falls back to"),
    "store/sqlite": ([7], "a connection, which is opened, salvaged and opened again"),
}

# Headers of the C library that need no service of the operating system.
C_HEADERS = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp stdalign stdarg
    stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath uchar wchar wctype""".split())

# Libraries, and the folders that may use them. base/json.h makes jansson available everywhere.
LIBRARIES = {
    "jansson.h": None,
    "pthread.h": None,  # locks: C11 threads.h would hide them from ThreadSanitizer
    "dlfcn.h": ["tvm_ffi"],  # libraries that the host program has loaded
    "xxhash.h": ["base"],
    "nettle/": ["base"],
    "uni": ["base"],  # libunistring
    "sqlite3.h": ["store"],
    "zlib.h": ["base"],
    "sanitizer/asan_interface.h": ["base"],  # marks free blocks of a slab for AddressSanitizer
    "immintrin.h": ["kernels", "os"],
    "arm_neon.h": ["kernels"],
    "libxsmm.h": ["kernels"],
    "oneapi/dnnl/dnnl.h": ["kernels"],
}

# Single files that may use a system service that no other file uses.
EXCEPTIONS = {
    # membarrier(2), for the hot path only
    "src/runtime/state/epoch.c": ["linux/membarrier.h", "sys/syscall.h", "unistd.h"],
    # limits of a worker
    "src/tune/worker/confine.c": ["fcntl.h", "signal.h", "sys/prctl.h", "sys/resource.h", "unistd.h"],
}


def modules_in_order(root):
    """The names of the folders of src/, as CMakeLists.txt adds them."""
    return re.findall(r"^add_subdirectory\(src/(\w+)\)", (root / "CMakeLists.txt").read_text(), re.M)


def folders_in_order(root, module):
    """What the hone_module() of a module names as FOLDERS; empty: it says nothing of an order."""
    path = root / "src" / module / "CMakeLists.txt"
    found = re.search(r"\bFOLDERS((?:\s+[a-z_0-9.]+)+)", re.sub(r"#.*", "", path.read_text())) if path.exists() else None
    return found.group(1).split() if found else []


# Includes -------------------------------------------------------------------------------------------------------------

class Includes:
    def __init__(self, root, order):
        self.root, self.order = root, order

    def files(self):
        for top in ("include", "src", "examples"):
            yield from (path for path in sorted((self.root / top).rglob("*.[ch]")) if path.is_file())

    def why_not_quoted(self, header, folder):
        target = header.split("/")[0]
        if target == "hone":
            return None if (self.root / "include" / header).exists() else "no such public header"
        if "/" not in header or target not in self.order:
            return "write the path from src/"
        after = self.order.index(target) > self.order.index(folder)
        return f"{target} stands after {folder} in CMakeLists.txt" if after else None

    @staticmethod
    def library_allowed(header, folder):
        for name, folders in LIBRARIES.items():
            if header == name or (header.startswith(name) and not name.endswith(".h")):
                return folders is None or folder in folders
        return False

    def why_not(self, path, kind, header):
        parts = path.split("/")
        if parts[0] == "include":
            if kind == '"':
                return None if header.startswith("hone/") else "public headers include only hone/*.h"
            return None if header[:-2] in C_HEADERS else "public headers include only the C library"
        if parts[0] == "examples":
            local = kind == "<" or header.startswith("hone/") or (self.root / path).with_name(header).exists()
            return None if local else "examples use only hone/*.h"
        if len(parts) < 3:
            return None
        folder = parts[1]
        if folder not in self.order:
            return f"CMakeLists.txt adds no src/{folder}"
        if kind == '"':
            return self.why_not_quoted(header, folder)
        if folder == "os" or header in EXCEPTIONS.get(path, []) or header[:-2] in C_HEADERS:
            return None
        if self.library_allowed(header, folder):
            return None
        return "ask the system through src/os/os.h, or add the library to scripts/layers.py"

    def problems(self):
        pattern = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")
        for path in self.files():
            name = path.relative_to(self.root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                match = pattern.match(line)
                why = match and self.why_not(name, *match.groups())
                if why:
                    yield f"{name}:{number}: includes {match.group(2)}: {why}"


def command_problems(root):
    """The command's files include public headers and their own."""
    pattern = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
    for path in sorted((root / "cli").glob("*.[ch]")):
        for name in pattern.findall(path.read_text()):
            if not ((root / "include" / name).exists() or ("/" not in name and (root / "cli" / name).exists())):
                yield f"cli/{path.name}: includes {name}: the command uses hone/*.h; what it lacks there belongs into the API"


# Symbols --------------------------------------------------------------------------------------------------------------

class Unread(Exception):
    """A build folder that cannot be looked at, and why."""


def symbols_of(build, linked):
    """(object, symbol, kind) of the objects that ninja links to files of a name: a build folder may hold older ones beside them."""
    plan = build / "build.ninja"
    lines = [line for line in plan.open() if re.match(rf"build {linked}:", line)] if plan.exists() else []
    paths = sorted({word for line in lines for word in line.split() if word.endswith(".o")})
    if not paths or not all((build / path).exists() for path in paths):
        raise Unread(f"{build} is not built: cmake --preset release && cmake --build --preset release")
    out = subprocess.run(["nm", "-A", "-P", "-g", *paths], cwd=build, capture_output=True, text=True)
    if out.returncode != 0:
        raise Unread(f"nm: {out.stderr.strip()}")
    for line in out.stdout.splitlines():
        path, rest = line.split(": ", 1)
        yield path, *rest.split()[:2]


def command_symbol_problems(root, build):
    """The command's objects need of hone what libhone exports."""
    rows = list(symbols_of(build, "hone"))
    known = set((root / "scripts/exports.txt").read_text().split()) | {symbol for _, symbol, kind in rows if kind != "U"}
    for path, symbol, kind in rows:
        if kind == "U" and symbol.startswith("hone_") and symbol not in known:
            name = re.sub(r"CMakeFiles/.*\.dir/(.*)\.o$", r"\1", path)
            yield f"{name} uses {symbol}, which libhone does not export: what the command lacks belongs into the API"


class Objects:
    """The objects of libhone and libhone_xla, what each defines, and what each uses of another."""

    def __init__(self, build):
        self.build = build
        self.defined = {}  # symbol -> objects
        self.uses = {}  # object -> {symbol}

    @staticmethod
    def name(path):
        """src/tune/CMakeFiles/hone_tune.dir/wire/frame.c.o -> tune/wire/frame.c; None: of no module."""
        match = re.match(r"src/(\w+)/CMakeFiles/\w+\.dir/(.+)\.o$", path)
        if not match:
            return None
        made = match.group(2).split("/")
        return "/".join([match.group(1)] + [part for part in made if part != "__"])

    def read(self):
        for path, symbol, kind in symbols_of(self.build, r"libhone_(static\.a|xla\.so)"):
            self.add(self.name(path), symbol, kind)

    def add(self, name, symbol, kind):
        if name is None:
            return
        if kind == "U":
            self.uses.setdefault(name, set()).add(symbol)
        elif kind in "TDBRCGS":
            self.defined.setdefault(symbol, []).append(name)

    def edges(self):
        """(user, owner, symbol), in order."""
        for user in sorted(self.uses):
            for symbol in sorted(self.uses[user]):
                for owner in self.defined.get(symbol, []):
                    if owner != user:
                        yield user, owner, symbol


class Layers:
    def __init__(self, root, order, objects):
        self.order, self.objects = order, objects
        self.folders = {module: folders_in_order(root, module) for module in order}

    def why_not_between(self, user, owner):
        """Why an object may not use another one; None: it may."""
        mine, its = user.split("/"), owner.split("/")
        if its[0] not in self.order or mine[0] not in self.order:
            return f"CMakeLists.txt adds no src/{its[0] if its[0] not in self.order else mine[0]}"
        if mine[0] != its[0]:
            after = self.order.index(its[0]) > self.order.index(mine[0])
            return f"{its[0]} stands after {mine[0]} in CMakeLists.txt" if after else None
        return self.why_not_within(mine[0], mine[1:], its[1:])

    def why_not_within(self, module, mine, its):
        order = self.folders[module]
        mine, its = (rest[0] if len(rest) > 1 else "." for rest in (mine, its))
        if not order or mine == its:
            return None
        for folder in (mine, its):
            if folder not in order:
                return f"FOLDERS of src/{module}/CMakeLists.txt has no {folder}"
        after = order.index(its) > order.index(mine)
        return f"{its} stands after {mine} in FOLDERS of src/{module}/CMakeLists.txt" if after else None

    def problems(self):
        for symbol, owners in sorted(self.objects.defined.items()):
            if len(owners) > 1:
                yield f"{symbol} is defined by src/{' and by src/'.join(owners)}"
        for user, owner, symbol in self.objects.edges():
            why = self.why_not_between(user, owner)
            if why:
                yield f"src/{user} uses {symbol} of src/{owner}: {why}"


# Circles --------------------------------------------------------------------------------------------------------------

def strongly_connected(graph):
    """Tarjan's components with more than one node (Depth-first search and linear graph algorithms, 1972), without recursion."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(sorted(stack[at:]))
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(sorted(graph.get(following, ())))))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return [component for component in found if len(component) > 1]


def folder_of(component):
    """The deepest folder that holds all files of a circle."""
    parts = [name.split("/")[:-1] for name in component]
    common = []
    for column in zip(*parts):
        if len(set(column)) > 1:
            break
        common.append(column[0])
    return "/".join(common) or "."


def circles(objects):
    """folder -> circles, the largest first."""
    graph, by_folder = {}, {}
    for user, owner, _ in objects.edges():
        graph.setdefault(user, set()).add(owner)
    for component in strongly_connected(graph):
        by_folder.setdefault(folder_of(component), []).append(component)
    return {folder: sorted(found, key=len, reverse=True) for folder, found in sorted(by_folder.items())}


def circle_problems(objects):
    there = circles(objects)
    for folder in sorted(set(there) | set(CIRCLES)):
        sizes = [len(component) for component in there.get(folder, [])]
        allowed = CIRCLES.get(folder, ([], ""))[0]
        for i in range(max(len(sizes), len(allowed))):
            size = sizes[i] if i < len(sizes) else 0
            most = allowed[i] if i < len(allowed) else 0
            if size > most:
                names = ", ".join(f"src/{name}" for name in there[folder][i])
                yield f"{size} objects of src/{folder} use each other in a circle, at most {most} may: {names}"
            elif size < most:
                yield f"CIRCLES of scripts/layers.py allows src/{folder} a circle of {most}, and it has {size}: lower the number"


def main():
    parser = argparse.ArgumentParser(description="The order of the house.")
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=here)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--circles", action="store_true")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    order = modules_in_order(root)
    build = (arguments.build or root / "build").resolve()
    objects = Objects(build)
    problems = [*Includes(root, order).problems(), *command_problems(root)]
    try:
        objects.read()
        if arguments.circles:
            for folder, found in circles(objects).items():
                for component in found:
                    print(f"{folder}: {len(component)}: {' '.join(component)}")
            return 0
        problems += [*Layers(root, order, objects).problems(), *circle_problems(objects), *command_symbol_problems(root, build)]
    except Unread as why:
        problems.append(str(why))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
