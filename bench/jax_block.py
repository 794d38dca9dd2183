"""What tuning a JAX program is worth: the step of a small transformer block of hone's operations, before and after.

    PYTHONPATH=build/python:build-python python3 bench/jax_block.py tune FILE   # lowers, tunes with build/hone, keeps the result
    PYTHONPATH=build/python:build-python python3 bench/jax_block.py FILE        # measures with it

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


def main():
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
