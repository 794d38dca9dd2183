"""What tuning a JAX program is worth: the step of a small transformer block of hone's operations, before and after.

    PYTHONPATH=build/python:build-python python3 bench/jax_block.py tune FILE   # lowers, tunes with build/hone, keeps the result
    PYTHONPATH=build/python:build-python python3 bench/jax_block.py FILE        # measures with it

    PYTHONPATH=build/python:build-python python3 bench/jax_block.py bf16 1 128 1024

measures a transformer of four layers in bf16 that knows nothing of hone, by its rows, as it is, in float32 and under `hone.jax.patch`,
which tunes nothing.

With `train` in front of the other words the step is one of training: the loss and its gradients by the input and all parameters.

Both sides take turns in one process: the heuristic, what was tuned, and plain JAX. Each ratio is the median over the rounds,
with the 95 % interval of a bootstrap.
"""

import functools
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
os.environ["HONE_STORE"] = "none"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from block import Hone, Plain, block, loss, made  # noqa: E402

import hone.jax  # noqa: E402

ROUNDS = 41


def tune(step, x, p, path):
    program = path.with_suffix(".mlir")
    program.write_text(hone.jax.lower(step, x, p))
    out = subprocess.run([ROOT / "build" / "hone", "offline", "--json", "--seconds", "3", "--store", "memory:", program],
                         check=True, stdout=subprocess.PIPE).stdout
    path.write_bytes(out)


def measure(step, x, p):
    start = time.perf_counter()
    for _ in range(10):
        jax.block_until_ready(step(x, p))
    return (time.perf_counter() - start) / 10


def interval(ratios):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def layers(tokens, p):
    """Logits of a transformer with the weights of its layers in arrays of all, which a scan goes through. Heads have 64 elements."""
    def norm(x):
        wide = x.astype(jnp.float32)
        return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype)

    def layer(x, w):
        h = norm(x)
        q, k, v = ((h @ w[name]).reshape(1, len(x), -1, 64) for name in "qkv")
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ w["out"]
        h = norm(x)
        return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], None

    return norm(jax.lax.scan(layer, p["embedding"][tokens], p["layers"])[0]) @ p["head"]


def measure_bf16(rows, depth=4, width=256, words=512):
    generator = numpy.random.default_rng(3)
    shapes = {name: (depth, width, width) for name in ("q", "k", "v", "out")} | {"down": (depth, 3 * width, width)}
    shapes |= {"gate": (depth, width, 3 * width), "up": (depth, width, 3 * width)}
    wide = {"layers": shapes, "embedding": (words, width), "head": (width, words)}
    wide = jax.tree.map(lambda shape: jnp.asarray(generator.standard_normal(shape) * shape[-2] ** -0.5, jnp.float32), wide,
                        is_leaf=lambda one: isinstance(one, tuple))
    narrow, tokens = jax.tree.map(lambda one: one.astype(jnp.bfloat16), wide), jnp.arange(rows) % words
    programs = {"plain bf16": jax.jit(layers).lower(tokens, narrow).compile(), "plain f32": jax.jit(layers).lower(tokens, wide).compile()}
    with hone.jax.patch():
        programs["patched bf16"] = jax.jit(layers).lower(tokens, narrow).compile()
    given = {name: (tokens, wide if name == "plain f32" else narrow) for name in programs}
    made = {name: program(*given[name]).astype(jnp.float32) for name, program in programs.items()}
    times = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            times[name].append(measure(program, *given[name]))
    for name, values in times.items():
        middle, low, high = interval([a / b for a, b in zip(times["patched bf16"], values)])
        print(f"{rows:5} rows, {name:12} {statistics.median(values) * 1e6:8.0f} us, patched over it {middle:.3f} (95 % {low:.3f} to {high:.3f}), "
              f"largest difference to f32 {float(abs(made[name] - made['plain f32']).max()):.3f}", flush=True)


def main():
    if sys.argv[1] == "bf16":
        for rows in map(int, sys.argv[2:]):
            measure_bf16(rows)
        return
    path = pathlib.Path(sys.argv[-1])
    x, p = made(tokens=128, width=256, hidden=1024, words=2048)
    is_trained = sys.argv[1] == "train"
    steps = [functools.partial(loss if is_trained else block, ops, heads=4) for ops in (Hone, Plain)]
    step, plain = (jax.jit(jax.value_and_grad(one, argnums=(0, 1)) if is_trained else one) for one in steps)
    if "tune" in sys.argv[1:-1]:
        return tune(step, x, p, path)
    result = hone.Result.load(path)
    expected = plain(x, p)
    differences = jax.tree.map(lambda one, other: float(abs(one - other).max()), step(x, p), expected)
    print("largest difference to plain JAX:", max(jax.tree.leaves(differences)))
    times = {"heuristic": [], "tuned": [], "plain JAX": []}
    for _ in range(ROUNDS):
        times["heuristic"].append(measure(step, x, p))
        with result:
            times["tuned"].append(measure(step, x, p))
        times["plain JAX"].append(measure(plain, x, p))
    for name, values in times.items():
        print(f"{name:10} {statistics.median(values) * 1e6:8.0f} us")
    for name in ("heuristic", "plain JAX"):
        middle, low, high = interval([a / b for a, b in zip(times[name], times["tuned"])])
        print(f"{name} over tuned: {middle:.3f} (95 % {low:.3f} to {high:.3f})")


main()
