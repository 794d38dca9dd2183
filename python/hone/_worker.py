"""The process in which functions of Python are tried: hone-worker with an interpreter. Started by libhone, with a socket as
descriptor 3."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable


def main(imports: Iterable[str] = ()) -> None:
    """Works for libhone.

    Args:
        imports: modules that candidates use and that take seconds to import, which are to be none of theirs.
    """
    # Compile functions in this process: child processes of a compiler would outlive the candidate.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    from hone import _hone, _scripts

    _scripts.in_worker = True
    # If a candidate forks, its child must exit: otherwise both would answer.
    os.register_at_fork(after_in_child=lambda: os._exit(70))

    def load() -> None:
        for name in imports:
            with contextlib.suppress(Exception):  # a candidate that needs the module reports the error
                importlib.import_module(name)

    code = _hone.work(3, load)
    sys.stdout = sys.stderr = None  # type: ignore[assignment]
    os._exit(code)
