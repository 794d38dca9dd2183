"""The last step of every packer: pack.json is written, keeps what people changed in it, and is held to what hone says of it.

Nothing of hone is imported: packers run where its library is not, too.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, NoReturn

HERE = pathlib.Path(__file__).resolve().parent
FILES = ("file", "sha256", "files", "variants", "producer", "facts")  # fields of compiled files, which people do not edit


def fail(tool: str, status: int, text: str) -> NoReturn:
    """Leaves with a status and why."""
    print(f"{tool}: {text}", file=sys.stderr)
    sys.exit(status)


def module_of(tool: str, path: pathlib.Path) -> Any:
    """Executes a file that has a list KERNELS as a module; exits with 2 if it has no such list."""
    # The folder is part of the module's name, because two folders may have files of the same name.
    spec = importlib.util.spec_from_file_location(f"pack_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None or not path.exists():
        fail(tool, 2, f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not isinstance(getattr(module, "KERNELS", None), list):
        fail(tool, 2, f"{path} has no list KERNELS")
    return module


def parser_of(program: str, description: str | None, has_own: bool) -> argparse.ArgumentParser:
    """The parser of a packer that takes a folder and files.

    Args:
        has_own: a script calls it that has files of its own, and none need be named.
    """
    parser = argparse.ArgumentParser(prog=None if has_own else program, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="*" if has_own else "+")
    return parser


def find_hone() -> list[str] | None:
    """HONE_COMMAND, the command of a build tree, or that of the path; None: there is none."""
    named = os.environ.get("HONE_COMMAND")
    built = HERE.parent.parent / "build/hone"
    found = named or (str(built) if built.exists() else shutil.which("hone"))
    return [found] if found else None


# Edited fields --------------------------------------------------------------------------------------------------------


def _print(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _marks(row: dict[str, Any]) -> dict[str, str]:
    return {name: _print(value) for name, value in row.items() if name not in FILES}


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in ("algorithm", "name", "platform", "backend"))


def _merged(new: dict[str, Any], before: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A kernel as it is compiled now, with the fields that were edited since it was written."""
    made = (before.get("producer") or {}).get("made", {})
    edited = [name for name, value in before.items() if name not in FILES and made.get(name) != _print(value)]
    gone = [name for name in made if name not in before and name in new]
    kept = {**new, **{name: before[name] for name in edited}}
    for name in gone:
        del kept[name]
    return kept, [*edited, *(f"{name} (removed)" for name in gone)]


def merge(pack: dict[str, Any], before: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A new pack with what people wrote into the one before: its own fields, kernels and algorithms that no packer made, and edited
    fields of those that one did. Gives the pack, and what was kept in words."""
    told: list[str] = []
    theirs = {_key(row): row for row in before.get("kernels", [])}
    kernels = []
    for row in pack["kernels"]:
        old = theirs.pop(_key(row), None)
        if old is not None and "made" in (old.get("producer") or {}):
            row, edited = _merged(row, old)
            if edited:
                told.append(f"{row['name']}: {', '.join(edited)}")
        kernels.append(row)
    for old in theirs.values():
        if "made" not in (old.get("producer") or {}):
            kernels.append(old)
            told.append(f"{old.get('name')}, which was added by hand")
    whole = {**{name: value for name, value in before.items() if name not in ("kernels", "algorithms")}, **pack, "kernels": kernels}
    for name in ("name", "version", "description"):
        if name in before:
            whole[name] = before[name]
    algorithms = {row["signature"].split("(")[0]: row for row in pack.get("algorithms", [])}
    algorithms |= {row["signature"].split("(")[0]: row for row in before.get("algorithms", [])}
    if algorithms:
        whole["algorithms"] = [*algorithms.values()]
    return whole, told


def mark(pack: dict[str, Any], tool: str) -> None:
    """Records the generated fields, so that the next run can detect edited ones."""
    for row in pack["kernels"]:
        row["producer"] = {"tool": tool, **row.get("producer", {}), "made": _marks(row)}


# ---------------------------------------------------------------------------------------------------------------------


def check(folder: pathlib.Path) -> str | None:
    """What hone says against a pack; None: it takes the whole pack. FileNotFoundError: hone is not here."""
    command = find_hone()
    if command is None:
        raise FileNotFoundError("hone")
    # Reading a pack needs no GPU driver, no store and no other packs.
    env = {**{name: value for name, value in os.environ.items() if name != "HONE_PACK_PATH"}, "HONE_STORE": "none"}
    checked = subprocess.run([*command, "pack", "check", str(folder)], env=env, text=True, capture_output=True)
    return None if checked.returncode == 0 else f"{checked.stdout}{checked.stderr}".rstrip()


def write(tool: str, folder: pathlib.Path, pack: dict[str, Any], overwrite: bool = False) -> list[str]:
    """Writes pack.json. Gives what of the one before was kept, in words."""
    path, told = folder / "pack.json", []
    marked = json.loads(json.dumps(pack))
    mark(marked, tool)
    if path.exists() and not overwrite:
        try:
            before = json.loads(path.read_text())
        except ValueError:
            sys.exit(f"{tool}: {path} is not JSON: fix it, or replace it with --overwrite")
        marked, told = merge(marked, before)
    path.write_text(json.dumps(marked, indent=1) + "\n")
    return told


def finish(tool: str, folder: pathlib.Path, pack: dict[str, Any], note: str = "", overwrite: bool = False) -> None:
    """Writes pack.json and leaves: with 0 when hone takes the whole pack, else with 1 and its words."""
    files = sum(len(kernel.get("variants", [None])) for kernel in pack["kernels"])
    if files == 0:
        sys.exit(f"{tool}: nothing was compiled: there is no kernel with a config")
    for words in write(tool, folder, pack, overwrite):
        print(f"{tool}: kept as it was edited: {words}", file=sys.stderr)
    print(f"{folder}: {len(pack['kernels'])} kernels, {files} files{note}")
    try:
        problem = check(folder)
    except FileNotFoundError:
        print(f"{tool}: not checked, since hone is not here: build it, name it in HONE_COMMAND, or run `hone pack check`", file=sys.stderr)
        return
    if problem is not None:
        sys.exit(f"{tool}: hone refuses the pack:\n{problem}")
