"""Functions of JAX as kernels of platforms xla and pallas: exported to StableHLO for a call, and run without Python from then on."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import math
import pathlib
import re
from typing import Any

from hone import _sources, errors, kernels

# The StableHLO version that all current plugins read.
STABLEHLO = "1.12.0"
# Custom calls that a kernel of Pallas becomes in a module.
_CALLS = ("__gpu$xla.gpu.triton", "mosaic_gpu_v2", "tpu_custom_call")
_DTYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32",
           "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool", "complex64": "c64",
           "complex128": "c128", "float8_e4m3fn": "f8_e4m3fn", "float8_e5m2": "f8_e5m2"}


def _wide() -> Any:
    """Enables 64-bit types in JAX, even if the program has not enabled them."""
    import jax

    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    return enable(True)


def _as_called(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> Any:
    """Without 64-bit types in a call the program's own setting holds: under another one jax.random makes float64 where it made float32."""
    return _wide() if any(dtype in ("float64", "int64", "uint64", "complex128") for dtype, _ in tensors.values()) else contextlib.nullcontext()


def _check_result(name: str, made: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """Kernels of XLA may give as many elements in another shape."""
    if hasattr(made, "dtype") and (str(made.dtype) != dtype or made.size != math.prod(shape)):
        raise errors.InvalidArgumentError(f"gives {name} as {made.dtype} of shape {tuple(made.shape)}, expected {dtype} of shape {shape}")


def _unsharded() -> Any:
    """One device: shardings that a function names are no operations of Shardy's, which not every plugin reads."""
    try:
        from jax._src.config import use_shardy_partitioner
    except ImportError:
        return contextlib.nullcontext()
    return use_shardy_partitioner(False)


def _module(function: Any, inputs: list[Any], place: str) -> bytes:
    """A portable artifact."""
    import jax
    from jax import export
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    checks = [export.DisabledSafetyCheck.custom_call(name) for name in _CALLS]
    with _unsharded():
        exported = export.export(jax.jit(function, keep_unused=True), platforms=[place], disabled_checks=checks)(*inputs)
    context = ir.Context()
    stablehlo.register_dialect(context)
    text = stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized)
    with context:
        return bytes(stablehlo.serialize_portable_artifact_str(str(text), STABLEHLO))


def _describe(call: Any) -> tuple[dict[str, tuple[str, tuple[int, ...]]], dict[str, Any]]:
    """Tensors and scalars of a call by name."""
    tensors, scalars = {}, {}
    for parameter, value in zip(call.operation.parameters, call.values):
        if parameter["kind"] == "tensor":
            if value is not None:
                tensors[parameter["name"]] = (str(value[0]), tuple(value[1]))
        else:
            scalars[parameter["name"]] = value
    return tensors, scalars


def _conditions(tensors: dict[str, tuple[str, tuple[int, ...]]], scalars: dict[str, Any], inputs: list[str]) -> list[str]:
    found = []
    for name in inputs:
        shape = tensors[name][1]
        found += [f"{name}.ndim == {len(shape)}", *(f"{name}.shape[{axis}] == {size}" for axis, size in enumerate(shape))]
    for name, value in scalars.items():
        if isinstance(value, bool):
            found.append(name if value else f"not {name}")
        elif isinstance(value, (int, float)):
            found.append(f"{name} == {value!r}")
        elif isinstance(value, str):
            found.append(f'{name} == "{value}"')
    return found


@dataclasses.dataclass
class Function:
    """A function that a program registered: exported for each call that is tuned or decided."""

    algorithm: str
    name: str
    platform: str
    signature: str
    function: Any
    positional: list[str]
    keywords: list[str]
    configs: list[dict[str, Any]]
    constraints: list[str]
    digest: str
    priority: int
    backend: str = "any"

    def prefix(self) -> str:
        """Of the folders of its packs: the digest of all that goes in beside a call."""
        import jax
        import jaxlib

        key = json.dumps([self.digest, self.algorithm, self.name, self.platform, self.signature, jax.__version__, jaxlib.__version__, self.configs,
                          self.constraints, self.priority, STABLEHLO, bool(jax.config.jax_enable_x64)])
        return f"{self.platform}-{hashlib.sha256(key.encode()).hexdigest()[:24]}-"

    def _bound(self, config: dict[str, Any], scalars: dict[str, Any], inputs: list[str], results: dict[str, tuple[str, tuple[int, ...]]]) -> Any:
        def bound(*arrays: Any) -> Any:
            named = {**config, **scalars, **dict(zip(inputs, arrays))}
            came = self.function(*[named.get(name) for name in self.positional], **{name: named.get(name) for name in self.keywords})
            if isinstance(came, dict):
                came = tuple(came[name] for name in results)
            for (name, said), made in zip(results.items(), came if isinstance(came, (tuple, list)) else (came,)):
                _check_result(name, made, *said)
            return came

        return bound

    def compile_for(self, call: Any) -> pathlib.Path:
        """The pack for a call."""
        import jax

        on_gpu = "@cuda" in call.text
        parameters = call.operation.parameters
        tensors, scalars = _describe(call)
        inputs = [one["name"] for one in parameters if one["kind"] == "tensor" and not one["is_result"] and one["name"] in tensors]
        results = {one["name"]: tensors[one["name"]] for one in parameters if one["is_result"]}
        from hone.triton import _narrowed, variables_of

        chosen = {}
        for one in parameters:
            variable = re.match(r"\w+", one["type"])
            if one["kind"] == "tensor" and variable is not None and variable[0] in variables_of(self.signature) and one["name"] in tensors:
                chosen[variable[0]] = _DTYPES[tensors[one["name"]][0]]

        def make(folder: pathlib.Path) -> list[dict[str, Any]]:
            shown = [jax.ShapeDtypeStruct(tensors[name][1], tensors[name][0]) for name in inputs]
            variants = []
            for index, config in enumerate(self.configs):
                content = _module(self._bound(config, scalars, inputs, results), shown, "cuda" if on_gpu else "cpu")
                file = f"{self.name}-{index}.vhlo"
                (folder / file).write_bytes(content)
                variants.append({"config": config, "file": file, "sha256": hashlib.sha256(content).hexdigest()})
            row: dict[str, Any] = {
                "algorithm": self.algorithm, "name": f"{self.name}_{call.key[:8]}", "platform": self.platform, "backend": "gpu" if on_gpu else "cpu",
                "signature": _narrowed(self.signature, chosen), "priority": self.priority, "arguments": ", ".join(inputs),
                "condition": " and ".join(_conditions(tensors, scalars, inputs)),
                "producer": {"tool": "hone.kernel", "jax": jax.__version__, "stablehlo": STABLEHLO}}
            if len(variants) == 1 and not variants[0]["config"]:
                row |= {"file": variants[0]["file"], "sha256": variants[0]["sha256"]}
            else:
                for variant in variants:
                    if self.constraints:
                        variant["condition"] = " and ".join(f"({one})" for one in self.constraints)
                row["variants"] = variants
            return [row]

        with _as_called(tensors):
            return kernels.compiled_once(kernels.cache_folder() / f"{self.prefix()}{call.key}", self.name, "hone.kernel", make)

    def compiled(self) -> list[pathlib.Path]:
        """What of it was exported so far, in this program."""
        return [*dict.fromkeys(one.folder for one in kernels.registered()
                               if one.algorithm == self.algorithm and one.platform == self.platform and one.name.startswith(f"{self.name}_"))]


def register(platform: str, function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    """What ``@hone.kernel(..., platform="xla")`` does."""
    from hone.triton import UnfitError, expand

    kernels.check_options(platform, options, ("space", "condition", "arguments", "priority", "backend", "arrays"))
    signature, parameters = kernels.parameters_of(algorithm)
    try:
        configs, constraints = expand(options["space"]) if options.get("space") else ([{}], [])
    except UnfitError as error:
        raise errors.InvalidArgumentError(f"{name}: {error}") from error
    names = [*dict.fromkeys(itertools.chain.from_iterable(configs))]
    positional, keywords, writes = kernels.plan_call(function, name, parameters, names, options.get("arguments") or {})
    if writes:
        raise errors.InvalidArgumentError(f"{name} takes a result, and functions of JAX write nothing: let it return them")
    source = _sources.source_of(function, caller)
    if options.get("condition"):
        constraints.append(options["condition"])
    made = Function(algorithm, name, platform, signature, function, positional, keywords, configs, constraints, source.digest,
                    options.get("priority", 50))
    kernels.add_lazy(made)
    kernels.take_up(made)
