"""What a call with tensors of torch costs: hone.run beside the same with numpy's arrays, an operation of hone.torch beside an
empty operation of torch.library with its schema, and an empty function of tvm-ffi where that can be imported.

    PYTHONPATH=build/python:build-python/torch-cpu:build-python[:build-python/cute-dsl] python3 bench/torch_calls.py [--json]

Takes turns in rounds in one process; the kernel has one row of 64 to work on. A ratio is that of the medians, its interval of a bootstrap
over the rounds.
"""

import json
import os
import random
import statistics
import sys
import time

os.environ.setdefault("HONE_STORE", "none")

import numpy  # noqa: E402
import torch  # noqa: E402

import hone  # noqa: E402
import hone.torch  # noqa: E402

ROUNDS, CALLS = 101, 2000
# Row, what it is compared with, what it is held to: a ratio, or nanoseconds.
BOUNDS = (
    ("hone.run, 3 tensors of torch", "hone.run, 3 numpy arrays", 1.5, None),
    ("a bound plan, 3 tensors of torch", None, None, 1000),
    ("hone.run, the result made", "torch.empty_like", None, None),
    ("operation, result given", "empty operation, result given", 1.3, None),
    ("operation, result made", "empty operation, result made", 1.3, None),
    ("operation, result made", "empty torch.library.custom_op, result made", 1.3, None),
    ("operation, result made, inference mode", "empty operation, result made, inference mode", 1.3, None),
    ("hone.run, 3 tensors of torch", "tvm-ffi, nop(3 tensors of torch)", None, None),
)


def empty_operations():
    """Of the schemas of rms_norm, as torch.library makes them in Python."""
    library = torch.library.Library("hone_bench", "DEF")
    library.define("given(Tensor x, Tensor weight, *, float eps=1e-06, Tensor(a!) y) -> ()")
    library.define("made(Tensor x, Tensor weight, *, float eps=1e-06) -> Tensor")
    library.impl("given", lambda x, weight, y: None, "CPU")
    library.impl("made", lambda x, weight: torch.empty_like(x), "CPU")

    @torch.library.custom_op("hone_bench::custom", mutates_args=())
    def custom(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    globals()["kept"] = library, custom
    return torch.ops.hone_bench.given.default, torch.ops.hone_bench.made.default, torch.ops.hone_bench.custom.default


def in_inference(call):
    def run():
        with torch.inference_mode():
            return measure(call)

    return run


def rows():
    x, w, y = torch.ones(1, 64), torch.ones(64), torch.zeros(1, 64)
    a, b, c = (numpy.ones(shape, numpy.float32) for shape in ((1, 64), 64, (1, 64)))
    plan = hone.bind("rms_norm", x, w, y)
    given, made, custom = empty_operations()
    ours, ours_out = hone.torch.ops.rms_norm.default, hone.torch.ops.rms_norm.out
    calls = {
        "hone.run, 3 tensors of torch": lambda: hone.run("rms_norm", x, w, y),
        "hone.run, 3 numpy arrays": lambda: hone.run("rms_norm", a, b, c),
        "a bound plan, 3 tensors of torch": lambda: plan(x, w, y),
        "hone.run, the result made": lambda: hone.run("rms_norm", x, w),
        "torch.empty_like": lambda: torch.empty_like(x),
        "operation, result given": lambda: ours_out(x, w, y=y),
        "empty operation, result given": lambda: given(x, w, y=y),
        "operation, result made": lambda: ours(x, w),
        "empty operation, result made": lambda: made(x, w),
        "empty torch.library.custom_op, result made": lambda: custom(x, w),
    }
    try:
        import tvm_ffi

        nop = tvm_ffi.get_global_func("testing.nop", allow_missing=True) or tvm_ffi.convert(lambda *tensors: None)
        calls["tvm-ffi, nop(3 tensors of torch)"] = lambda: nop(x, w, y)
    except ImportError:
        pass
    timed = {name: (lambda call=call: measure(call)) for name, call in calls.items()}
    for name in ("operation, result made", "empty operation, result made"):
        timed[f"{name}, inference mode"] = in_inference(calls[name])
    return timed


def measure(call, calls=CALLS):
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / calls


def ratio(ours, theirs):
    """Of the medians, with its 95 % interval."""
    picked = random.Random(1)
    ratios = []
    for _ in range(1000):
        rounds = picked.choices(range(len(ours)), k=len(ours))
        ratios.append(statistics.median(ours[i] for i in rounds) / statistics.median(theirs[i] for i in rounds))
    ratios.sort()
    return statistics.median(ours) / statistics.median(theirs), ratios[25], ratios[974]


def main():
    timed = rows()
    times = {name: [] for name in timed}
    for _ in range(ROUNDS):
        for name, run in timed.items():
            times[name].append(run())
    compared = []
    for name, other, at_most, at_most_ns in BOUNDS:
        if other not in times and other is not None:
            continue
        row = {"name": name, "peer": other, "median_ns": statistics.median(times[name]), "best_ns": min(times[name])}
        if other is not None:
            row["ratio"], row["low"], row["high"] = ratio(times[name], times[other])
            row["peer_median_ns"], row["best_ratio"] = statistics.median(times[other]), min(times[name]) / min(times[other])
        row["held_to"] = at_most if at_most is not None else at_most_ns
        compared.append(row)
    if "--json" in sys.argv:
        print(json.dumps(compared, indent=1))
        return
    for name, of in times.items():
        print(f"{name:50} {statistics.median(of):7.0f} ns, fastest round {min(of):7.0f} ns")
    for row in compared:
        if row["peer"] is not None:
            print(f"{row['name']} / {row['peer']}: {row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}), of the fastest rounds "
                  f"{row['best_ratio']:.2f}" + (f"; held to {row['held_to']}" if row["held_to"] else ""))


if __name__ == "__main__":
    main()
