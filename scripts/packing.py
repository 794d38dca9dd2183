"""Loads a packer of the Python package without the package's library."""

import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def load(name):
    """A module of the package's folder, by itself."""
    spec = importlib.util.spec_from_file_location(f"hone_{name}", ROOT / f"python/hone/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look the module up there
    spec.loader.exec_module(module)
    return module
