"""Which algorithms there are, and which kernels they have. As ``hone.registry``: of the default runtime."""

from __future__ import annotations

import dataclasses
import functools
import sys
from typing import Any

from hone import runtimes
from hone.contexts import Context


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One implementation of an algorithm. Called with what :func:`hone.run` takes behind the name, it runs, with its
    heuristic; inside a function that JAX traces, as :func:`hone.jax.call`."""

    algorithm: str
    name: str
    platform: str
    backend: str
    priority: int
    is_reference: bool
    space: str | None
    revision: str | None
    runtime: Any = dataclasses.field(default=None, repr=False, compare=False)

    @functools.cached_property
    def _override(self) -> Context:
        return _runtime(self.runtime).override_with(self.algorithm, self.name, platform=self.platform)

    def __call__(self, *arrays: Any, **scalars: Any) -> Any:
        tracer = getattr(getattr(sys.modules.get("jax"), "core", None), "Tracer", ())
        if any(isinstance(value, tracer) for value in (*arrays, *scalars.values())):
            import hone.jax

            with self._override:
                return hone.jax.call(self.algorithm, *arrays, **scalars)
        with self._override:
            return _runtime(self.runtime).run(self.algorithm, *arrays, **scalars)


def _runtime(runtime: Any) -> Any:
    return runtimes.default() if runtime is None else runtime


def algorithms(*, runtime: Any = None) -> list[str]:
    """Names of all algorithms, sorted."""
    return _runtime(runtime).algorithms()


def platforms(*, runtime: Any = None) -> list[str]:
    """Names of the platforms that some kernel is written for, sorted; :func:`devices` has those that are here."""
    return sorted({kernel.platform for name in algorithms(runtime=runtime) for kernel in kernels(name, runtime=runtime)})


def signature(algorithm: str, *, runtime: Any = None) -> str:
    """The signature of an algorithm: names, kinds, dtypes, shapes and defaults of its parameters and results."""
    return _runtime(runtime).operation(algorithm).signature


def kernels(algorithm: str, *, runtime: Any = None) -> list[Kernel]:
    """The kernels of an algorithm by falling priority; none for an unknown one. With them functions that the program registered and
    that are compiled when a call needs them: their names stand for the kernels that are made of them."""
    from hone.kernels import declared  # kernels imports runtimes

    rows = [Kernel(**row, runtime=runtime) for row in _runtime(runtime).kernels(algorithm)]
    names = {row.name for row in rows}
    functions = [Kernel(algorithm, one.name, one.platform, one.backend, one.priority, False, None, None, runtime)
                 for one in declared(algorithm) if one.name not in names]
    return sorted(rows + functions, key=lambda row: -row.priority)


def get(algorithm: str, platform: str | None = None, backend: str | None = None, *, runtime: Any = None) -> Kernel:
    """The kernel of highest priority for a platform and backend, after the registry's fall-backs: to be called.

    Args:
        algorithm: its name, in any case.
        platform: ``"native"``, ``"cuda"``, ...; ``"auto"``; None: any.
        backend: ``"cpu"``, ``"gpu"``, ``"any"``; None: hardware that is present.

    Raises:
        NotFoundError: names the query and lists what there is.
    """
    return Kernel(**_runtime(runtime).get(algorithm, platform, backend), runtime=runtime)


def validate(algorithm: str | None = None, *, runtime: Any = None) -> list[str]:
    """The mismatches between the signatures of an algorithm's kernels (None: of every algorithm's); none: all agree."""
    return _runtime(runtime).validate(algorithm)[1]


def devices(*, runtime: Any = None) -> list[dict[str, Any]]:
    """The devices of every platform that has some."""
    return _runtime(runtime).devices()
