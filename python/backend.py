"""Builds wheels and source archives of the Python package, as PEP 517 asks: `pip wheel .` or `python -m build` in the tree's root.

A wheel takes what CMake builds in build-wheel/, or in the build folder that HONE_BUILD or `-Cbuild=FOLDER` names. It holds
the extension, libhone, the command and the worker, with the libraries that they need inside, and the licenses of these. Its
tag names the oldest C library that has every symbol that the files ask for.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
import urllib.parse
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of the machine that the wheel is installed on, beside libhone itself.
OF_THE_SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread))\.so\.\d+|libhone\.so\.\d+")
OLDEST = 17  # manylinux_2_17 is the oldest tag that PyPI takes of those for a version of the C library
# What is linked in: library, Debian's package of it, which knows its version and the text of its license, and the license's name.
INSIDE = (("jansson", "libjansson-dev", "MIT"), ("sqlite", "libsqlite3-dev", "blessing"),
          ("nettle", "nettle-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later"),
          ("libunistring", "libunistring-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later"), ("zlib", "zlib1g-dev", "Zlib"),
          ("xxhash", "libxxhash-dev", "BSD-2-Clause"), ("cpu_features", "libcpu-features-dev", "Apache-2.0"))
LIBXSMM = ("libxsmm", "libxsmm-dev", "BSD-3-Clause")
NAMES = {"libhone_wheel_library.so": "libhone.so.0", "hone_wheel_command": "hone", "hone_wheel_worker": "hone-worker"}
# The command stands in the package, beside the worker and the plugins that it finds there.
COMMAND = b"""#!python
import importlib.util, os, sys
program = os.path.join(os.path.dirname(importlib.util.find_spec("hone").origin), "hone")
os.execv(program, [program, *sys.argv[1:]])
"""
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def read_project():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    version = re.search(r"project\(hone VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    return dict(project, version=version)


def _run(*command):
    subprocess.run([str(word) for word in command], check=True)


def _build(settings):
    """The folder of a build that has the package."""
    named = (settings or {}).get("build") or os.environ.get("HONE_BUILD")
    folder = pathlib.Path(named).resolve() if named else ROOT / "build-wheel"
    if not (folder / "CMakeCache.txt").exists():
        _run("cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DHONE_TESTS=OFF", "-DHONE_BENCH=OFF",
             *(["-G", "Ninja"] if shutil.which("ninja") else []))
    _run("cmake", "--build", folder, "--parallel", "--target", "hone_wheel")
    return folder


def _check(file):
    """That a library or program needs nothing that a machine may lack; the version of the C library that it asks for."""
    out = subprocess.run(["readelf", "-dV", str(file)], check=True, capture_output=True, text=True).stdout
    others = [name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", out) if not OF_THE_SYSTEM.fullmatch(name)]
    if others:
        raise RuntimeError(f"{file.name} is linked with {', '.join(others)}: a wheel stands alone")
    return max([OLDEST, *(int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", out))])


def _staged(settings, folder):
    """Lays what the wheel holds into the folder; the version of the C library that it asks for."""
    _run("cmake", "--install", _build(settings), "--prefix", folder, "--component", "wheel", "--strip")
    package = folder / "hone"
    for name, new in NAMES.items():
        (package / name).replace(package / new)
    return max(_check(file) for file in package.iterdir() if file.read_bytes()[:4] == b"\x7fELF")


def _of_debian(package):
    """The version of a package and the text of its license."""
    out = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    license = pathlib.Path("/usr/share/doc", package, "copyright")
    if out.returncode != 0 or not license.exists():
        raise RuntimeError(f"the license of what is linked in is that of Debian's {package}, which is missing: scripts/setup build")
    return out.stdout, license.read_bytes()


def bill_of_materials(project, inside, versions):
    """What a release is made of, as CycloneDX 1.5: inside are rows of INSIDE, versions those of Debian's packages."""
    def component(name, license, **more):
        return {"type": "library", "name": name, **more, "licenses": [{"expression": license}]}
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": component("hone", project["license"], version=project["version"])},
        "components": [component(name, license, version=versions[package], purl=_purl(package, versions[package]))
                       for name, package, license in inside]}, indent=1) + "\n"


def _purl(package, version):
    """How lists of vulnerabilities name a Debian package."""
    return f"pkg:deb/debian/{package}@{urllib.parse.quote(version, safe='.-~:')}"


def _metadata(project, licenses=("LICENSE",)):
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", f"License-Expression: {project['license']}",
             *[f"License-File: {name}" for name in licenses], f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *[f'Requires-Dist: {one}; extra == "{extra}"' for one in needs]]
    readme = (ROOT / "README.md").read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _tag(minor):
    return f"cp311-abi3-manylinux_2_{minor}_{os.uname().machine}"


def _write(wheel, name, data, executable=False):
    info = zipfile.ZipInfo(name, EPOCH)
    info.external_attr = (0o100755 if executable else 0o100644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(info, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def _stem(project):
    return f"{project['name'].replace('-', '_')}-{project['version']}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = read_project()
    stem = _stem(project)
    info = f"{stem}.dist-info"
    with tempfile.TemporaryDirectory() as folder:
        staged = pathlib.Path(folder)
        tag = _tag(_staged(config_settings, staged))
        inside = [*INSIDE, *([LIBXSMM] if (staged / "hone/libhone_libxsmm.so").exists() else [])]
        known = {package: _of_debian(package) for _, package, _ in inside}
        files = {str(file.relative_to(staged)): file.read_bytes() for file in sorted(staged.rglob("*")) if file.is_file()}
        programs = {name for name in files if os.access(staged / name, os.X_OK)} | {f"{stem}.data/scripts/hone"}
    files[f"{stem}.data/scripts/hone"] = COMMAND
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    for name, package, _ in inside:
        files[f"{info}/licenses/{name}"] = known[package][1]
    versions = {package: version for package, (version, _) in known.items()}
    files[f"{info}/sboms/hone.cdx.json"] = bill_of_materials(project, inside, versions).encode()
    files[f"{info}/METADATA"] = _metadata(project, ["LICENSE", *(name for name, _, _ in inside)]).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: hone\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    path = pathlib.Path(wheel_directory) / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        record = [_write(wheel, name, data, name in programs) for name, data in files.items()]
        _write(wheel, f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]).encode())
    return path.name


def archive(path, stem, more=()):
    """Everything that git tracks, and more files (name, bytes), as stem.tar.gz: the same files make the same archive."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True).stdout
    time = int(subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], check=True, capture_output=True).stdout)
    tracked = ((name, ROOT / name) for name in sorted(filter(None, listed.decode().split("\0"))) if (ROOT / name).is_file())
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data, mode in [*((name, file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644) for name, file in tracked),
                                 *((name, data, 0o644) for name, data in more)]:
            info = tarfile.TarInfo(f"{stem}/{name}")
            info.size, info.mode, info.mtime = len(data), mode, time
            tar.addfile(info, io.BytesIO(data))


def build_sdist(sdist_directory, config_settings=None):
    """Everything that git tracks."""
    project = read_project()
    name = f"{_stem(project)}.tar.gz"
    archive(pathlib.Path(sdist_directory) / name, _stem(project), [("PKG-INFO", _metadata(project).encode())])
    return name
