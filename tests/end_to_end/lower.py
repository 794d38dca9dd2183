"""Lowers small programs with JAX and writes each in every form: python lower.py FOLDER. A helper of test_forms.

Their operations carry hone's labels, under scan, cond, fori_loop, gradients, checkpoint, nested jit, vmap and shard_map, and tokamax's.
"""

import gzip
import hashlib
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy
from jax import export, lax
from jax._src.interpreters import mlir
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import Mesh, PartitionSpec

EPS = 1e-6


def labelled(name, function, **call):
    spec = {"args_spec": [], "batch_axes": None, "kwargs_spec": call, "method": None}
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return jax.named_call(function, name=f"hone#{name}.v1:{key}")


def array(x):
    return {"dtype": str(x.dtype), "shape": list(x.shape)}


def normalize(x, w):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + EPS) * w


def rms_norm(x, w):
    return labelled("rms_norm", normalize, eps=EPS, weight=array(w), x=array(x))(x, w)


def matmul(a, b):
    return labelled("matmul", lambda a, b: a @ b, a=array(a), b=array(b), transpose_b=False)(a, b)


def softmax(x):
    return labelled("softmax", lambda x: jax.nn.softmax(x, -1), scale=1.0, x=array(x))(x)


def block(x, w, a, b):
    return softmax(matmul(matmul(rms_norm(x, w), a), b))


def loops(x, w, a, b):
    x, _ = lax.scan(lambda x, _: (matmul(matmul(rms_norm(x, w), a), b), None), x, None, length=5)
    x = lax.fori_loop(0, 7, lambda i, x: rms_norm(x, w), x)
    return lax.cond(x.sum() > 0, softmax, lambda x: x, x)


def gradient(x, w, a, b):
    return jax.value_and_grad(lambda x: (matmul(matmul(rms_norm(x, w), a), b) ** 2).sum())(x)


def checkpoint(x, w, a, b):
    return jax.grad(lambda x: jax.checkpoint(lambda x: softmax(rms_norm(x, w)))(x).sum())(x)


def nested(x, w, a, b):
    inner = jax.jit(lambda x: rms_norm(x, w) + softmax(x))
    outer = jax.jit(lambda x: inner(x) * 2)
    return outer(x) + outer(inner(x))


def vmapped(x, w, a, b):
    return jax.vmap(lambda row: rms_norm(row[None], w)[0])(x)


def sharded(x, w, a, b):
    mesh, rows = Mesh(numpy.array(jax.devices()[:1]), ("d",)), PartitionSpec("d")
    return jax.shard_map(lambda x: rms_norm(x, w), mesh=mesh, in_specs=rows, out_specs=rows)(x)


def tokamax(x, w, a, b):
    label = "tokamax:" + json.dumps({
        "op": {"__type": "tokamax._src.ops.normalization.base.Normalization", "config": {}},
        "arguments": {"axis": -1, "epsilon": EPS, "offset": None, "scale": "f32[64]", "x": "f32[8,64]"}})
    with set_xla_metadata(xla_metadata_payload=label):
        x = normalize(x, w)
    with jax.named_scope(label):
        return normalize(x, w)


PROGRAMS = (block, loops, gradient, checkpoint, nested, vmapped, sharded, tokamax)
SHAPES = ((8, 64), (64,), (64, 128), (128, 64))


def forms(function):
    """Each form's name and bytes."""
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in SHAPES]
    jitted = jax.jit(function)
    lowered, exported = jitted.lower(*arguments), export.export(jitted)(*arguments)
    compiled = lowered.compile()
    yield "mlir", lowered.as_text(debug_info=True).encode()
    yield "mlir.gz", gzip.compress(lowered.as_text(debug_info=True).encode())
    yield "bytecode", mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
    yield "portable", exported.mlir_module_serialized
    yield "export", bytes(exported.serialize())
    yield "export.mlir", exported.mlir_module().encode()
    yield "hlo", lowered.as_text("hlo", debug_info=True).encode()
    yield "hlo.pb", lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    yield "optimised.hlo", compiled.as_text().encode()
    yield "optimised.pb", compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()


if __name__ == "__main__":
    for program in PROGRAMS:
        for name, data in forms(program):
            (pathlib.Path(sys.argv[1]) / f"{program.__name__}.{name}").write_bytes(data)
