"""hone finds the fastest correct kernel for each call on this machine, once, and remembers it.

    import hone, numpy as np

    x, w = np.ones((64, 4096), np.float32), np.ones(4096, np.float32)
    y = hone.run("rms_norm", x, w, eps=1e-5)      # the chain decides; after that: a table hit
    with hone.tune("rms_norm", x, w, eps=1e-5, seconds=5):
        y = hone.run("rms_norm", x, w, eps=1e-5)  # what was tuned

Arrays of numpy, torch, CuPy and JAX are taken as they are, by DLPack, without copies; calls on a GPU run on their current stream. ``hone.registry`` lists what there is;
``hone.jax`` calls hone from inside XLA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hone import _arrays, _hone, _logging, _streams, errors
from hone import contexts as _contexts
from hone._hone import bind, call, run
from hone._products import matmul
from hone.audits import Audit, Audited
from hone.caches import ConfigCache, PersistentCache, overlay_cache
from hone.contexts import Config, Context, Link
from hone.counts import Counted, Stats, Unasked, Unstored
from hone.errors import (
    BusyError,
    CancelledError,
    CorruptError,
    HoneError,
    IncompatibleError,
    InvalidArgumentError,
    IOFailedError,
    KernelFailedError,
    NotFoundError,
    OutOfMemoryError,
    UnavailableError,
    UnsupportedError,
)
from hone.results import Decision, Result
from hone.runtimes import Runtime, default, use
from hone.stores import Store, StoredDecision

_hone.setup(
    errors.BY_STATUS, _contexts._current, default, _logging.tell,
    _arrays.allocate, _arrays.maker, _arrays.exporter, _arrays.show_torch, _arrays.show_cupy, _streams.choose, _arrays.listed,
)

from hone import _scripts  # noqa: E402  (needs the lines above)

_scripts.lend()

from hone import agreements, registry  # noqa: E402
from hone.implementations import Backend, KernelRegistry, KernelSpec, Platform, kernel_registry  # noqa: E402
from hone.kernels import algorithm, kernel, pack  # noqa: E402
from hone.invocations import AutotuningResult, Entry, autotune_lowered, get_invocations, record_invocation  # noqa: E402

__version__ = _hone.version()
__all__ = [
    "Audit", "Audited", "AutotuningResult", "Backend", "BusyError", "CancelledError", "Config", "ConfigCache",
    "Context", "CorruptError", "Counted", "Decision", "Entry", "HoneError", "IOFailedError", "IncompatibleError",
    "InvalidArgumentError", "KernelFailedError", "KernelRegistry", "KernelSpec", "Link", "NotFoundError",
    "OutOfMemoryError", "PersistentCache", "Platform", "Result", "Runtime", "Stats", "Store", "StoredDecision",
    "Unasked", "UnavailableError", "UnsupportedError", "Unstored", "agreements", "algorithm", "audit", "autotune_lowered", "bind", "call", "context", "decide",
    "default", "explain", "get_invocations", "kernel", "kernel_registry", "matmul", "offline", "overlay", "overlay_cache",
    "override", "pack", "policy", "record_invocation", "registry", "run", "stats", "tune", "use",
]


def __dir__() -> Sequence[str]:
    """What programs use: completion offers nothing of what this module is made of."""
    loaded = [name for name in ("cute", "ejkernel", "jax", "torch", "triton", "tuning") if name in globals()]
    return sorted([*__all__, *loaded, "list", "__version__", "__all__", "__doc__", "__file__", "__name__", "__path__"])


def decide(operation: str, *arrays: Any, **scalars: Any) -> Decision:
    """The chain's answer for a call, without running it. Under the policy ``tune`` this tunes.

    Args:
        operation: a name, with ``arrays`` and ``scalars`` as of :func:`run` (an array may be a pair of dtype and shape,
            ``("float32", (64, 4096))``), or a whole call text, ``"rms_norm(f32[64,4096], f32[4096])"``.
    """
    return default().decide(operation, *arrays, **scalars)


def explain(operation: str, *arrays: Any, json: bool = False, **scalars: Any) -> str:
    """Why a call gets the kernel it gets, as text or as a JSON document. Takes calls as :func:`decide` does; never tunes."""
    return default().explain(operation, *arrays, json=json, **scalars)


def tune(operation: str | None = None, *arrays: Any, **keywords: Any) -> Result:
    """Tunes a call: all kernels of its algorithm in one contest, verified, measured, remembered.

    Args:
        operation: as of :func:`decide`; None: every call that was recorded and has no verified decision.
        arrays: their contents are not looked at; inputs are made up.
        keywords: scalars of the call, and options:
            ``seconds`` (time limit, 30), ``evaluations`` (most candidates, 500), ``patience``,
            ``candidate_seconds``, ``wait_seconds``, ``isolation`` (``"worker"`` or ``"in_process"``), ``cold``,
            ``regime`` (``"warm"``, ``"cold"``, ``"graph"`` or ``"eager"``: what a time is of), ``seed``,
            ``store`` (keep it, True), ``fresh``, ``keep_existing``, ``platform``, ``kernel``, ``stable``,
            ``expected_calls``, ``batch_seconds``, ``progress`` (a callable that gets a dict; True: tqdm's bar; False: none;
            None: tqdm's where there is a terminal or a notebook, and what it waits for), ``tuner`` (a function of the program's own, which gets a
            :class:`hone.tuning.Tuning`, measures what it wants and may return its choice, ``(kernel, config)``; None:
            hone's search).

    Returns:
        The decisions with their evidence; entered with ``with``, they answer.

    Raises:
        NotFoundError: no kernel can run it, or none passed.
        KeyboardInterrupt: Ctrl-C ends the contest; what was measured is kept.
    """
    return default().tune(operation, *arrays, **keywords)


def audit(*calls: str, threshold: float = 0.05, **options: Any) -> Audit:
    """Measures stored choices again beside what else is fast, and changes nothing.

    Args:
        calls: call texts; none: every choice that the runtime's store has for this machine.
        threshold: share by which another may be faster, or the choice slower than it was: 0.05 is 5 %.
        options: ``seconds`` (a call, 5), ``candidate_seconds``, ``wait_seconds``, ``isolation``, ``seed``,
            ``progress``: those of :func:`tune`.

    Returns:
        Each choice with its times, its regret and whether it passed.

    Raises:
        NotFoundError: a call has no stored choice, or there is no store.
    """
    return default().audit(*calls, threshold=threshold, **options)


def offline(program: Any, *, unproved: bool = False, **options: Any) -> Result:
    """Tunes every operation of a lowered program: JAX's ``Lowered``, or its path, text or bytes. Options are those of
    :func:`tune`.

    Args:
        unproved: also operations that were matched by their operands alone.
        options: those of :func:`tune`; ``same_regime``: no call is measured cold because the program reads its arrays once a step.
    """
    return default().offline(program, unproved=unproved, **options)


def stats() -> Stats:
    """What was hit: every call that was made, what answered it, how often a plan was there and how long deciding took.

    Calls of bound plans are counted only under ``HONE_STATS`` and while recording is on.
    """
    return default().stats()


Kernels = dict[str, list[registry.Kernel]]


def list() -> Kernels:
    """Every algorithm with its kernels, by falling priority."""
    return {name: registry.kernels(name) for name in registry.algorithms()}


def override(
    algorithm: str, kernel: str, config: Config = None, *, platform: str | None = None, store: bool = False
) -> Context:
    """A context in which every call of an algorithm gets a kernel.

    Args:
        config: a dict or text, ``"rows=4 threads=1"``; None: the kernel's heuristic.
        store: also write the answers to the store, marked as unverified.
    """
    return default().override_with(algorithm, kernel, config, platform, store)


def overlay(entries: Result | Iterable[Mapping[str, Any]]) -> Context:
    """A context with decisions that go before all others.

    Args:
        entries: a result, or dicts with ``algorithm``, ``key``, ``kernel`` and, where they matter, ``config``, ``device``
            (fingerprint), ``version``, ``spec``, ``platform``.
    """
    return default().context(overlay=entries)


def policy(name: str) -> Context:
    """A context with another policy: ``"tune"``, ``"heuristic"``, ``"fail"`` or ``"frozen"``."""
    return default().context(policy=name)


def context(
    *,
    overlay: Result | Iterable[Mapping[str, Any]] | None = None,
    override: Mapping[str, str | tuple[str, Config]] | None = None,
    policy: str | None = None,
    links: Mapping[str, Link | None] | None = None,
    persist: bool | None = None,
) -> Context:
    """A context with any of these.

    Args:
        override: from algorithms to a kernel, or to a pair of kernel and config.
        links: changes of the chain, from the name of a link (``"override"``, ``"overlay"``, ``"lock"``, ``"memory"``,
            ``"store"``, ``"transfer"``, ``"autotune"``, ``"heuristic"``) to None, which leaves it out, or to a function
            that is asked in its place: it gets the call, and gives a kernel, a pair of kernel and config, or None to
            have the next link asked. An exception of it is the call's.
        persist: whether what is tuned goes to the store; False: it stays in this process.
    """
    return default().context(overlay=overlay, override=override, policy=policy, links=links, persist=persist)
