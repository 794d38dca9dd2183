"""What a call costs from Python, beside the call of an empty operation of tvm-ffi and torch in the same process.

    PYTHONPATH=build/python python3 bench/python.py [--json]

needs numpy; tvm-ffi (apache-tvm-ffi) and torch are measured where they can be imported. Each figure is the median of 15
rounds in which all take turns, and the fastest round.
"""

import json
import os
import sys
import time

os.environ.setdefault("HONE_STORE", "none")

import numpy  # noqa: E402

import hone  # noqa: E402

ROUNDS, CALLS = 15, 20000


def tvm_ffi_rows(x, w, y):
    try:
        import tvm_ffi
    except ImportError:
        return {}
    echo = tvm_ffi.get_global_func("testing.nop", allow_missing=True) or tvm_ffi.convert(lambda *arrays: None)
    tensors = [tvm_ffi.from_dlpack(array) for array in (x, w, y)]
    return {
        "tvm-ffi, nop(3 tensors of tvm-ffi)": lambda: echo(*tensors),
        "tvm-ffi, nop(3 numpy arrays by from_dlpack)": lambda: echo(*[tvm_ffi.from_dlpack(a) for a in (x, w, y)]),
    }


def torch_rows(x, w, y):
    try:
        import torch
    except ImportError:
        return {}
    library = torch.library.Library("hone_bench", "DEF")
    library.define("nop(Tensor x, Tensor w, Tensor(a!) y) -> ()")
    library.impl("nop", lambda a, b, c: None, "CPU")
    tensors = [torch.from_numpy(array) for array in (x, w, y)]
    empty = torch.empty(0)
    rows = {
        "torch, empty operation in Python (3 tensors)": lambda: torch.ops.hone_bench.nop(*tensors),
        "torch, aten::alias (1 tensor)": lambda: torch.ops.aten.alias.default(empty),
        "hone.run of an empty call, 3 tensors of torch": lambda: hone.run("rms_norm", *tensors),
    }
    globals()["kept"] = library
    return rows


def rows():
    # No rows: the kernels have nothing to do, and what is left is the call.
    x, w = numpy.zeros((0, 64), numpy.float32), numpy.zeros(64, numpy.float32)
    y = numpy.zeros_like(x)
    small, out = numpy.ones((1, 64), numpy.float32), numpy.zeros((1, 64), numpy.float32)
    plan, norm = hone.bind("rms_norm", x, w, y), hone.default().operation("rms_norm")
    made = {
        "hone.run, 3 numpy arrays": lambda: hone.run("rms_norm", x, w, y),
        "hone.run, 3 numpy arrays and eps": lambda: hone.run("rms_norm", x, w, y, eps=1e-6),
        "operation.run, 3 numpy arrays": lambda: norm.run(x, w, y),
        "plan, 3 numpy arrays": lambda: plan(x, w, y),
        "hone.run, one row of 64": lambda: hone.run("rms_norm", small, w, out),
        "hone.run, result made": lambda: hone.run("rms_norm", small, w),
        "numpy.empty": lambda: numpy.empty((1, 64), numpy.float32),
        "3 x numpy __dlpack__ alone": lambda: (x.__dlpack__(), w.__dlpack__(), y.__dlpack__()),
        "an empty Python function of 3": lambda f=lambda a, b, c: None: f(x, w, y),
    }
    return {**made, **tvm_ffi_rows(x, w, y), **torch_rows(x, w, y)}


def measure(call):
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - start) / CALLS


def main():
    calls = rows()
    times = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(measure(call))
    table = {name: {"median_ns": sorted(of)[len(of) // 2], "best_ns": min(of)} for name, of in times.items()}
    if "--json" in sys.argv:
        print(json.dumps(table, indent=1))
        return
    print(f"{'':48} {'median':>10} {'fastest':>10}")
    for name, row in table.items():
        print(f"{name:48} {row['median_ns']:7.0f} ns {row['best_ns']:7.0f} ns")
    made, given, empty = (times[name] for name in ("hone.run, result made", "hone.run, one row of 64", "numpy.empty"))
    over = sorted((one - other) / alone for one, other, alone in zip(made, given, empty))
    print(f"a result that hone makes costs {over[len(over) // 2]:.2f} times numpy.empty over one that is given ({over[0]:.2f} to {over[-1]:.2f} by round); held to 2")


main()
