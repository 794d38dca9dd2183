"""y = x / sqrt(mean(x^2) + eps) * weight in Pallas for a GPU, of 4096 rows of 4096 in bf16, and y = x + x over blocks of 4096 floats for
every backend: what scripts/pack-pallas compiles."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

ROWS = 4096
SIZE = 4096


def twice(config, backend):
    """The kernel for one config."""
    block = config["block"]

    def kernel(x, y):
        y[...] = x[...] + x[...]

    options = {}
    if backend == "gpu":
        from jax.experimental.pallas import triton
        options["compiler_params"] = triton.CompilerParams(num_warps=config["warps"], num_stages=2)
    # A TPU's vectors have rows of 128.
    shape, size = ((SIZE // 128, 128), (block // 128, 128)) if backend == "tpu" else ((SIZE,), (block,))
    spec = pl.BlockSpec(size, (lambda i: (i, 0)) if backend == "tpu" else (lambda i: (i,)))
    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct(shape, jnp.float32), grid=(SIZE // block,), in_specs=[spec], out_specs=spec,
        interpret=backend == "cpu", name="twice", **options)
    return lambda x: call(x.reshape(shape)).reshape(SIZE)


def rms_norm(config, backend):
    """The kernel for one config: a program takes a row at a time, held whole."""
    def kernel(x, weight, eps, y):
        row = x[...].astype(jnp.float32)
        scale = jax.lax.rsqrt(jnp.mean(row * row) + eps[0])
        y[...] = (row * scale * weight[...].astype(jnp.float32)).astype(y.dtype)

    options = {}
    if backend == "gpu":
        from jax.experimental.pallas import triton
        options["compiler_params"] = triton.CompilerParams(num_warps=config["warps"], num_stages=config["stages"])
    call = pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((ROWS, SIZE), jnp.bfloat16), grid=(ROWS,),
        in_specs=[pl.BlockSpec((None, SIZE), lambda i: (i, 0)), pl.BlockSpec((SIZE,), lambda i: (0,)),
                  pl.BlockSpec((1,), lambda i: (0,))],
        out_specs=pl.BlockSpec((None, SIZE), lambda i: (i, 0)), interpret=backend == "cpu", name="rms_norm", **options)
    return lambda x, weight, eps: call(x, weight, eps.reshape(1))


KERNELS = [
    {
        "function": rms_norm,
        "algorithm": "rms_norm",
        "signature": "rms_norm(x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-06) -> y: T[..., dim] where T in bf16",
        "inputs": [jax.ShapeDtypeStruct((ROWS, SIZE), jnp.bfloat16), jax.ShapeDtypeStruct((SIZE,), jnp.bfloat16),
                   jax.ShapeDtypeStruct((), jnp.float32)],
        "arguments": "x, weight, f32(eps)",
        "condition": f"x.size == {ROWS * SIZE} and dim == {SIZE}",
        "configs": {"gpu": [{"warps": warps, "stages": stages} for warps in (4, 8, 16) for stages in (1, 2)]},
    },
    {
        "function": twice,
        "algorithm": "twice",
        "inputs": [jax.ShapeDtypeStruct((SIZE,), jnp.float32)],
        "arguments": "x",
        "condition": f"n == {SIZE}",
        "configs": {
            "cpu": [{"block": 512}, {"block": 1024}],
            "gpu": [{"block": block, "warps": warps} for block in (256, 1024) for warps in (2, 4)],
            "tpu": [{"block": 1024}, {"block": 2048}],
        },
    },
]

ALGORITHMS = [{"signature": "twice(x: f32[n]) -> y: f32[n]"}]
