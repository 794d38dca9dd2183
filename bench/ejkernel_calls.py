"""Operations of the real ejkernel, each by ejkernel's own choice on this CPU and by hone's kernels in their place (hone.ejkernel.register).

    PYTHONPATH=build/python:build-python:build-python/ejkernel-imports python3 bench/ejkernel_calls.py [--json]

ejkernel tunes each call first, as its policy has it, and hone then tunes the same program for some seconds. Both are programs of JAX that were compiled
before; they take turns in one process. A ratio is the median over the rounds, its interval of a bootstrap.
"""

import functools
import json
import os
import random
import statistics
import sys
import tempfile
import time

CACHES = tempfile.TemporaryDirectory(prefix="hone-ejkernel-")
os.environ.update(HONE_STORE="none", JAXTYPING_DISABLE="1", EJKERNEL_PERSISTENT_CACHE_DIR=CACHES.name)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("EJKERNEL_AUTOTUNE_POLICY", "autotune")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from ejkernel import modules  # noqa: E402

import hone  # noqa: E402
import hone.ejkernel  # noqa: E402
import hone.jax  # noqa: E402

ROUNDS, SECONDS = 31, 8.0


def array(*shape, dtype=jnp.float32):
    return jnp.asarray(numpy.random.default_rng(len(shape)).standard_normal(shape), dtype)


def calls():
    """By what is printed: a function of arrays, and these."""
    def heads(batch, tokens, heads, kv_heads, dim, dtype=jnp.float32):
        return array(batch, tokens, heads, dim, dtype=dtype), *(array(batch, tokens, kv_heads, dim, dtype=dtype) for _ in range(2))

    flash = functools.partial(modules.flash_attention, causal=True)
    scaled = functools.partial(modules.scaled_dot_product_attention, causal=True)
    return {
        "flash_attention, f32[1,1024,8,64], 2 heads of keys, causal": (flash, heads(1, 1024, 8, 2, 64)),
        "flash_attention, bf16[1,1024,8,64], 2 heads of keys, causal": (flash, heads(1, 1024, 8, 2, 64, jnp.bfloat16)),
        "scaled_dot_product_attention, f32[2,256,8,64], causal": (scaled, heads(2, 256, 8, 8, 64)),
        "attention, f32[2,256,8,64], causal": (lambda q, k, v: modules.attention(q, k, v, causal=True, dtype=jnp.float32)[0], heads(2, 256, 8, 8, 64)),
        "mean_pooling, f32[4,4096,256], chunks of 32": (functools.partial(modules.mean_pooling, chunk_size=32), (array(4, 4096, 256),)),
        "rwkv4, f32[2,512,512]": (modules.rwkv4, (-abs(array(512)), array(512), array(2, 512, 512), array(2, 512, 512))),
    }


def compiled(function, arrays):
    return jax.jit(lambda *given: function(*given)).lower(*arrays).compile()


def measure(program, arrays, count):
    start = time.perf_counter()
    for _ in range(count):
        jax.block_until_ready(program(*arrays))
    return (time.perf_counter() - start) / count


def interval(ratios):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def compared(name, theirs, ours, arrays, kernel):
    wanted, made = theirs(*arrays), ours(*arrays)
    apart = max(float(jnp.abs(a.astype(jnp.float32) - b.astype(jnp.float32)).max()) for a, b in zip(jax.tree.leaves(wanted), jax.tree.leaves(made), strict=True))
    count = max(1, int(0.02 / measure(theirs, arrays, 1)))
    times = [(measure(theirs, arrays, count), measure(ours, arrays, count)) for _ in range(ROUNDS + 1)][1:]
    ratio, low, high = interval([a / b for a, b in times])
    return {"call": name, "ejkernel_us": statistics.median(a for a, _ in times) * 1e6, "hone_us": statistics.median(b for _, b in times) * 1e6,
            "kernel": kernel, "ratio": ratio, "low": low, "high": high, "apart": apart}


def main():
    asked = calls()
    theirs = {}
    for name, (function, arrays) in asked.items():
        jax.block_until_ready(function(*arrays))  # which ejkernel tunes
        theirs[name] = compiled(function, arrays)
    hone.ejkernel.register()
    rows = []
    for name, (function, arrays) in asked.items():
        result = hone.jax.tune(jax.jit(lambda *given, function=function: function(*given)), *arrays, seconds=SECONDS, progress=False)
        with result:
            ours = compiled(function, arrays)
            rows.append(compared(name, theirs[name], ours, arrays, ", ".join(one.kernel for one in result)))
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['call']}: ejkernel {row['ejkernel_us']:.0f} us, hone's {row['kernel']} {row['hone_us']:.0f} us; ejkernel over hone "
              f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}); results apart by {row['apart']:.1e}")


if __name__ == "__main__":
    main()
