"""Builds wheels and source archives of the Python package, as PEP 517 asks: `python -m build` in the tree's root.

A wheel takes what CMake builds in build-wheel/, or in the build folder that HONE_BUILD or `-Cbuild=FOLDER` names. It holds
the extension, libhone, hone-worker and the libraries that they need beyond the C library's own.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of the machine that the wheel is installed on: the C library, its loader, and the compiler's.
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def _project():
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
    _run("cmake", "--build", folder, "--parallel")
    return folder


def _needed(file):
    """What a library or program is linked with: names and paths."""
    out = subprocess.run(["ldd", str(file)], check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", out, re.MULTILINE))


def _add_libraries(package):
    for file in [*package.glob("*.so*"), package / "hone-worker"]:
        for name, path in _needed(file).items():
            if not OF_THE_SYSTEM.match(name) and not (package / name).exists():
                shutil.copyfile(path, package / name)
    # The library goes by its soname: a wheel has no links.
    for file in package.glob("libhone.so.*.*"):
        file.replace(package / re.match(r"libhone\.so\.\d+", file.name).group())


def _staged(settings, folder):
    build = _build(settings)
    _run("cmake", "--install", build, "--prefix", folder, "--component", "python", "--strip")
    package = folder / "hone"
    if not (package / "_hone.abi3.so").exists():
        raise RuntimeError(f"{build} has no Python package: Python's headers were missing (scripts/setup installs them)")
    for link in package.glob("libhone.so.*"):
        if link.is_symlink():
            link.unlink()
    _add_libraries(package)


def _metadata(project):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *[f'Requires-Dist: {one}; extra == "{extra}"' for one in needs]]
    readme = (ROOT / "README.md").read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _tag():
    return f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _write(wheel, name, data, executable=False):
    info = zipfile.ZipInfo(name, EPOCH)
    info.external_attr = (0o100755 if executable else 0o100644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(info, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    path = pathlib.Path(wheel_directory) / f"{stem}-{_tag()}.whl"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path, "w") as wheel:
        staged = pathlib.Path(folder)
        _staged(config_settings, staged)
        record = [_write(wheel, str(file.relative_to(staged)), file.read_bytes(), os.access(file, os.X_OK))
                  for file in sorted(staged.rglob("*")) if file.is_file()]
        record.append(_write(wheel, f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes()))
        record.append(_write(wheel, f"{info}/METADATA", _metadata(project).encode()))
        kind = f"Wheel-Version: 1.0\nGenerator: hone\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
        record.append(_write(wheel, f"{info}/WHEEL", kind.encode()))
        _write(wheel, f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]).encode())
    return path.name


def build_sdist(sdist_directory, config_settings=None):
    """Everything that git tracks."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        info = pathlib.Path(folder) / "PKG-INFO"
        info.write_text(_metadata(project))
        with tarfile.open(pathlib.Path(sdist_directory) / f"{stem}.tar.gz", "w:gz") as archive:
            for name in filter(None, listed.decode().split("\0")):
                if (ROOT / name).is_file():
                    archive.add(ROOT / name, f"{stem}/{name}")
            archive.add(info, f"{stem}/PKG-INFO")
    return f"{stem}.tar.gz"
