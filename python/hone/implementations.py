"""Functions of a program as implementations of algorithms, registered and looked up by platform and backend.

    @hone.kernel_registry.register("flash_attention", hone.Platform.TRITON, hone.Backend.GPU)
    def flash_attention_triton(q, k, v): ...

    hone.kernel_registry.get("flash_attention", platform="triton", backend="gpu")(q, k, v)
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import re
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hone import errors, registry

F = TypeVar("F", bound=Callable[..., Any])

# Parameters that affect how a result is computed, but not the result. Each implementation may add or omit them.
TUNING = frozenset(
    "block_m block_n block_k block_q block_kv block_size block_v block_d block_e block_dim num_warps num_stages num_ctas num_waves "
    "num_sms num_splits split_k use_bf16 seq_threshold_3d num_par_softmax_segments max_warps num_queries_per_block "
    "num_kv_pages_per_block num_kv_splits gemm_block fwd_params bwd_params".split()
)


class Platform(enum.StrEnum):
    """How an implementation is written."""

    TRITON = "triton"
    PALLAS = "pallas"
    CUDA = "cuda"
    CUTE = "cute"
    TILELANG = "tilelang"
    XLA = "xla"
    NATIVE = "native"
    OPENCL = "opencl"
    NULL = "null"
    FFI = "ffi"
    PYTHON = "python"


class Backend(enum.StrEnum):
    """What an implementation runs on; ANY answers every query."""

    GPU = "gpu"
    MPS = "mps"
    TPU = "tpu"
    CPU = "cpu"
    ANY = "any"


class MissingError(errors.NotFoundError, ValueError):
    """No implementation answers a query."""


@dataclasses.dataclass(frozen=True)
class KernelSpec:
    """One registered implementation."""

    platform: Platform
    backend: Backend
    algorithm: str
    implementation: Callable[..., Any]
    priority: int = 0


# --- unsupported arguments


def _deleted(function: Callable[..., Any]) -> set[str]:
    """Names in del statements: parameters that an implementation has for its signature's sake."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return set()
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Delete) for target in node.targets]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _says_something(value: Any, default: Any) -> bool:
    if default is inspect.Parameter.empty:
        return True
    if not isinstance(default, (bool, int, float, str)):
        return value is not default
    try:
        return bool(value != default)
    except (TypeError, ValueError):  # an array
        return True


def _told(hook: Any, arguments: dict[str, Any]) -> list[str]:
    """What an implementation's own ``__ejkernel_unsupported__`` says of a call."""
    if callable(hook):
        try:
            hook = hook(**arguments)
        except TypeError:
            hook = hook(arguments)
    if isinstance(hook, str):
        return [hook]
    return [str(item) for item in hook if item] if isinstance(hook, Iterable) else []


def _guarded(function: F, algorithm: str, platform: Platform) -> F:
    """The function, that refuses what it does not support with a text that names algorithm and platform."""
    signature = inspect.signature(function)
    where = f"{algorithm} (platform={platform.value}): "

    @functools.cache
    def ignored() -> list[str]:
        deleted = _deleted(function) - TUNING
        return [name for name in signature.parameters if name in deleted]

    def reasons(args: tuple[Any, ...], keywords: dict[str, Any]) -> list[str]:
        given = signature.bind_partial(*args, **keywords).arguments
        return [f"{name} is not supported" for name in ignored()
                if name in given and _says_something(given[name], signature.parameters[name].default)
                ] + _told(getattr(function, "__ejkernel_unsupported__", None), given)

    @functools.wraps(function)
    def guarded(*args: Any, **keywords: Any) -> Any:
        why = reasons(args, keywords)
        if why:
            raise errors.UnsupportedError(where + "; ".join(why))
        try:
            return function(*args, **keywords)
        except errors.UnsupportedError:
            raise
        except (NotImplementedError, ValueError) as error:
            if not re.search("not supported|unsupported", str(error).lower()):
                raise
            raise errors.UnsupportedError(where + str(error)) from error

    guarded.__signature__ = signature  # type: ignore[attr-defined]
    return guarded  # type: ignore[return-value]


# --- agreement of signatures

_SPELLINGS = ((r"<class '(.+)'>", r"\1"), (r"\bjaxtyping\.", ""), (r"\b(?:(?:jax\.)?jaxlib\._jax|jax)\.Array\b", "Array"),
              (r"\bjax\._src\.(?:lax\.lax|typing)\.|\bjax\.typing\.", ""), (r"\bjax\.lax\.", "lax."),
              (r"\bejkernel\.[\w.]+\.(\w+)", r"\1"))


def _annotation(annotation: Any) -> str:
    """One spelling of a type that modules import by different names."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    for pattern, plain in _SPELLINGS:
        text = re.sub(pattern, plain, text)
    if "PrecisionLike" in text or "DotAlgorithm" in text:
        return "PrecisionLike"
    return "DTypeLike" if "DTypeLike" in text or "SupportsDType" in text else text


def _parameters(spec: KernelSpec) -> list[inspect.Parameter]:
    return [one for one in inspect.signature(spec.implementation).parameters.values() if one.name not in TUNING]


def _differs(ours: Any, theirs: Any) -> bool:
    try:
        return bool(ours != theirs)
    except (TypeError, ValueError):  # arrays
        return ours is not theirs


def _of_parameter(ours: inspect.Parameter, theirs: inspect.Parameter) -> list[tuple[str, str, str]]:
    """Each difference: the parameter in a message, and what either has."""
    found = []
    named = f" parameter '{ours.name}'"
    if ours.name != theirs.name:
        found.append(("", f"parameter '{ours.name}'", f"parameter '{theirs.name}'"))
    if ours.kind != theirs.kind:
        found.append((named, ours.kind.name, theirs.kind.name))
    if _differs(ours.default, theirs.default):
        found.append((named, f"default={ours.default}", f"default={theirs.default}"))
    if _annotation(ours.annotation) != _annotation(theirs.annotation):
        found.append((named, f"type={ours.annotation} = {ours.default}", f"type={theirs.annotation} = {theirs.default}"))
    return found


def _mismatches(reference: KernelSpec, spec: KernelSpec) -> list[tuple[str, str, str]]:
    ours, theirs = _parameters(reference), _parameters(spec)
    if len(ours) != len(theirs):
        return [("", f"{len(ours)} parameters", f"{len(theirs)} parameters")]
    return [row for pair in zip(ours, theirs) for row in _of_parameter(*pair)]


def _show(algorithm: str, specs: Iterable[KernelSpec]) -> None:
    print(f"Algorithm: {algorithm}")
    for spec in specs:
        signature = inspect.signature(spec.implementation)
        print(f"{spec.platform}/{spec.backend} (priority={spec.priority}): {signature}")
        for name, one in signature.parameters.items():
            print(f"    {name}: kind {one.kind.name}, default {one.default}, annotation {one.annotation}")


# --- the registry


def _default_backend() -> str:
    jax = sys.modules.get("jax")
    return "cpu" if jax is None else jax.default_backend()


class KernelRegistry:
    """Implementations by algorithm. One of a program's own knows what it was given alone; any thread may use it.

    Args:
        with_hone: hone's own kernels answer where nothing that was registered does.
    """

    def __init__(self, *, with_hone: bool = False) -> None:
        self._registry: dict[str, list[KernelSpec]] = {}
        self._with_hone = with_hone
        self._lock = threading.Lock()

    def register(
        self, algorithm: str, platform: Platform | str, backend: Backend | str, priority: int = 0
    ) -> Callable[[F], F]:
        """A decorator that registers a function. Of several that answer a query the one of highest priority is found,
        and of those the one registered first.

        What the function deletes (``del name``) it does not support: a call that says anything else than the default of
        such a parameter is an :class:`hone.UnsupportedError`, and so is a NotImplementedError or ValueError that says
        "not supported".
        """
        if not isinstance(algorithm, str) or not algorithm:
            raise TypeError(f"expected the name of an algorithm, got {algorithm!r}")
        if not isinstance(priority, int):
            raise TypeError(f"a priority must be a whole number, got {priority!r}")
        of, on = Platform(platform), Backend(backend)

        def decorator(function: F) -> F:
            guarded = _guarded(function, algorithm, of)
            spec = KernelSpec(of, on, algorithm, guarded, priority)
            with self._lock:
                specs = [*self._registry.get(algorithm.lower(), []), spec]
                self._registry[algorithm.lower()] = sorted(specs, key=lambda one: -one.priority)
            return guarded

        return decorator

    def _own(self, algorithm: str) -> list[KernelSpec]:
        return self._registry.get(algorithm.lower(), [])

    def _of_hone(self, algorithm: str) -> list[KernelSpec]:
        kernels = registry.kernels(algorithm) if self._with_hone else []
        return [KernelSpec(Platform(kernel.platform), Backend(kernel.backend), kernel.algorithm, kernel, kernel.priority)
                for kernel in kernels]

    def get(
        self, algorithm: str, platform: Platform | str | None = None, backend: Backend | str | None = None
    ) -> Callable[..., Any]:
        """The implementation of highest priority that answers; to be called.

        Args:
            algorithm: in any case.
            platform: None: any; ``"auto"``: any that this machine's backend runs.
            backend: None: any. Implementations for any backend answer every query. Where none is for any, a query for
                any finds what is for this machine's.

        Raises:
            ValueError: there is none (as :class:`MissingError`), or no such platform or backend.
        """
        if not isinstance(algorithm, str):
            raise TypeError(f"expected the name of an algorithm, got {algorithm!r}")
        own, hones = self._own(algorithm), self._with_hone and algorithm.lower() in registry.algorithms()
        if not own and not hones:
            raise MissingError(f"No implementation found for algorithm: {algorithm}")
        of = None if platform is None or platform == "auto" else Platform(platform)
        backend = _default_backend() if backend is None and platform == "auto" else backend
        on = None if backend is None else Backend(backend)
        found = self._found(own, of, on)
        if found is not None:
            return found
        if hones:
            try:
                return registry.get(algorithm, str(platform or "auto"), on and str(on))
            except (errors.NotFoundError, errors.InvalidArgumentError) as error:
                raise MissingError(self._missing(algorithm, of, on)) from error
        raise MissingError(self._missing(algorithm, of, on))

    @staticmethod
    def _missing(algorithm: str, platform: Platform | None, backend: Backend | None) -> str:
        return f"No implementation found for algorithm={algorithm}, platform={platform}, backend={backend}"

    def _found(
        self, specs: list[KernelSpec], platform: Platform | None, backend: Backend | None
    ) -> Callable[..., Any] | None:
        matching = [spec for spec in specs if platform in (None, spec.platform)]
        for on in (backend, _default_backend()) if backend == Backend.ANY else (backend,):
            for spec in matching:
                if on is None or spec.backend in (on, Backend.ANY):
                    return spec.implementation
        return None

    def list_algorithms(self) -> list[str]:
        """Their names in lower case, sorted."""
        return sorted({*self._registry, *(registry.algorithms() if self._with_hone else ())})

    def list_implementations(self, algorithm: str) -> list[KernelSpec]:
        """Those of an algorithm in the order in which they are looked at; none for an unknown one."""
        return [*self._own(algorithm), *self._of_hone(algorithm)]

    def validate_signatures(self, algorithm: str | None, verbose: bool = False) -> bool:
        """Whether all implementations of an algorithm (None: of each) have the parameters of the first, up to those of
        tuning. Each difference is a UserWarning.

        Args:
            verbose: print the signatures.

        Raises:
            ValueError: no such algorithm.
        """
        if algorithm is None:
            return all([self.validate_signatures(name, verbose) for name in self.list_algorithms()])
        if algorithm.lower() not in self.list_algorithms():
            raise MissingError(f"No implementation found for algorithm: {algorithm}")
        specs = self._own(algorithm)
        if verbose:
            _show(algorithm, specs)
        found = [(spec, row) for spec in specs[1:] for row in _mismatches(specs[0], spec)]
        for spec, (parameter, ours, theirs) in found:
            warnings.warn(
                f"Signature mismatch for algorithm '{algorithm}'{parameter}:\n"
                f"  Reference ({specs[0].platform}/{specs[0].backend}): {ours}\n"
                f"  Implementation ({spec.platform}/{spec.backend}): {theirs}", UserWarning, stacklevel=2)
        of_hone = self._with_hone and algorithm.lower() in registry.algorithms()
        return not found and not (of_hone and registry.validate(algorithm))


kernel_registry = KernelRegistry(with_hone=True)
