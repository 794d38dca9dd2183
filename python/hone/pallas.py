"""Kernels of Pallas as packs that hone runs through a PJRT plugin, without Python (docs/xla.md). No device is needed.

    python -m hone.pallas DIR FILE.py... [--backend cpu|gpu|tpu]... [--configs N] [--overwrite]

DIR gets pack.json and a module of StableHLO for each config, as a portable artifact of version 1.12.0, which older plugins read, too.
FILE.py has a list KERNELS, and may have a list ALGORITHMS with those of its own, {"signature": ...}. --backend may be there several times;
without one it is cpu, whose kernels are interpreted: to see that they are right. --configs lowers the first N configs of each kernel
alone. Needs jax (pip install jax==0.10.2). Leaves with 0 when the pack is whole, 1 when a kernel cannot be lowered, nothing was lowered
or hone refuses the pack, 2 on wrong use.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
from typing import Any

# Imported from this folder, because compiling does not need the package's library.
_spec = importlib.util.spec_from_file_location("hone_packing", pathlib.Path(__file__).with_name("_packing.py"))
packing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packing)

TOOL = "hone.pallas"
VERSION = "1.12.0"
CALLS = ("__gpu$xla.gpu.triton", "mosaic_gpu_v2", "tpu_custom_call")
PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
PACKED = ("algorithm", "signature", "arguments", "condition", "priority", "options")  # fields copied to pack.json unchanged
NEEDED = ("function", "algorithm", "inputs", "arguments", "configs")


def fail(status, text):
    packing.fail(TOOL, status, text)


def find_jax():
    """jax, which is kept from looking for devices and from writing paths of this machine into modules."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"
    try:
        import jax
    except ImportError as error:
        fail(2, f"jax is not here ({error}): pip install jax==0.10.2")
    return jax


def lower(jax, kernel, config, backend):
    from jax import export
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    checks = [export.DisabledSafetyCheck.custom_call(name) for name in CALLS]
    exported = export.export(
        jax.jit(kernel["function"](config, backend)), platforms=[PLATFORMS[backend]], disabled_checks=checks)(*kernel["inputs"])
    context = ir.Context()
    stablehlo.register_dialect(context)
    text = stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized)
    with context:
        return stablehlo.serialize_portable_artifact_str(str(text), VERSION)


def check_fields(path, kernel):
    where = f"{path}: {kernel.get('algorithm', 'a kernel')}"
    for name in NEEDED:
        if name not in kernel:
            fail(2, f"{where} has no field '{name}'")
    for name in kernel:
        if name not in (*NEEDED, *PACKED, "name"):
            fail(2, f"{where}: '{name}' is no field, expected one of {', '.join(dict.fromkeys((*NEEDED, *PACKED, 'name')))}")
    for name in kernel["configs"]:
        if name not in PLATFORMS:
            fail(2, f"{where}: 'configs' has the backend {name!r}, expected cpu, gpu or tpu")


def pack_kernel(jax, kernel, backend, folder, configs):
    name = f"{kernel.get('name', 'pallas')}_{backend}"
    variants = []
    for config in kernel["configs"][backend][:configs]:
        bytecode = lower(jax, kernel, config, backend)
        file = "_".join([kernel["algorithm"], name, *(f"{key}{value}" for key, value in config.items())]) + ".vhlo"
        (folder / file).write_bytes(bytecode)
        variants.append({"config": config, "file": file, "sha256": hashlib.sha256(bytecode).hexdigest()})
    return {**{field: kernel[field] for field in PACKED if field in kernel}, "name": name, "platform": "pallas", "backend": backend,
            "producer": {"tool": TOOL, "jax": jax.__version__, "stablehlo": VERSION}, "variants": variants}


def main(arguments: list[str] | None = None, own: tuple[pathlib.Path, ...] = ()) -> None:
    """The command.

    Args:
        own: files that are compiled where none is named.
    """
    parser = packing.parser_of("python -m hone.pallas", __doc__, bool(own))
    parser.add_argument("--backend", choices=PLATFORMS, action="append")
    parser.add_argument("--configs", type=int)
    parser.add_argument("--overwrite", action="store_true")
    asked = parser.parse_args(arguments)
    jax = find_jax()
    asked.folder.mkdir(parents=True, exist_ok=True)
    kernels: list[dict[str, Any]] = []
    algorithms: list[dict[str, Any]] = []
    for path in asked.files or own:
        module = packing.module_of(TOOL, path)
        algorithms += getattr(module, "ALGORITHMS", [])
        for kernel in module.KERNELS:
            check_fields(path, kernel)
            for backend in asked.backend or ["cpu"]:
                if backend not in kernel["configs"]:
                    continue
                try:
                    kernels.append(pack_kernel(jax, kernel, backend, asked.folder, asked.configs))
                except Exception as error:  # jax raises exceptions of any type
                    fail(1, f"{path}: {kernel['algorithm']} for {backend}: {type(error).__name__}: {error}")
    pack = {"hone_pack": 1, "name": asked.folder.resolve().name, "algorithms": algorithms, "kernels": kernels}
    packing.finish(TOOL, asked.folder, pack, overwrite=asked.overwrite)


if __name__ == "__main__":
    main()
