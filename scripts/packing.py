"""What the packers have in common: the last step, in which a pack is written, and held to what hone says of it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def find_hone():
    """HONE_COMMAND, the command of this tree's build, or that of the path; None: there is none."""
    named = os.environ.get("HONE_COMMAND")
    built = ROOT / "build/hone"
    return named or (str(built) if built.exists() else shutil.which("hone"))


def finish(tool, folder, pack, note=""):
    """Writes pack.json and leaves: with 0 when hone takes the whole pack, else with 1 and its words."""
    files = sum(len(kernel.get("variants", [None])) for kernel in pack["kernels"])
    if files == 0:
        sys.exit(f"{tool}: nothing was compiled: there is no kernel with a config")
    (folder / "pack.json").write_text(json.dumps(pack, indent=1) + "\n")
    print(f"{folder}: {len(pack['kernels'])} kernels, {files} files{note}")
    command = find_hone()
    if command is None:
        print(f"{tool}: not checked, since hone is not here: build it, name it in HONE_COMMAND, or run `hone pack check`", file=sys.stderr)
        return
    # The driver of a GPU, a store and other packs are nothing to a pack that is only read.
    env = {**{name: value for name, value in os.environ.items() if name != "HONE_PACK_PATH"}, "HONE_STORE": "none"}
    checked = subprocess.run([command, "pack", "check", str(folder)], env=env, text=True, capture_output=True)
    if checked.returncode != 0:
        sys.exit(f"{tool}: hone refuses the pack:\n{checked.stdout}{checked.stderr}".rstrip())
