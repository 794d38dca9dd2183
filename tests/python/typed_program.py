"""What a typed program writes with the package: mypy --strict reads it, and it runs."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hone
import hone.tuning
from hone import Context, Decision, Result

if sys.version_info >= (3, 11):
    from typing import assert_type


@hone.algorithm("typed_scale(x: T[n], *, by: f64 = 2) -> y: T[n] where T in f32, f64", independent="n")
def scale(x: NDArray[np.float64], by: float) -> NDArray[np.float64]:
    return x * by


@hone.kernel("typed_scale", space="rows: 1 | 2")
def blocks(x: NDArray[np.float32], by: float, rows: int) -> NDArray[np.float32]:
    return x * np.float32(by)


assert_type(scale(np.ones(2), 3.0), NDArray[np.float64])  # a decorated function stays what it was
assert_type(blocks(np.ones(2, np.float32), 3.0, 1), NDArray[np.float32])


def link(call: Any) -> str | tuple[str, hone.Config] | None:
    return "portable" if call.text.startswith("rms_norm") else None


def progress(now: dict[str, Any]) -> None:
    assert now["call"]


def tuner(tuning: hone.tuning.Tuning) -> tuple[hone.tuning.TuningKernel, dict[str, Any]] | None:
    for kernel in tuning.kernels:
        assert_type(kernel.measure(kernel.default).time_ns, float)
    return None


def main(folder: pathlib.Path) -> None:
    x, w = np.ones((8, 64), np.float32), np.ones(64, np.float32)
    with hone.tune("rms_norm", x, w, seconds=0.5, evaluations=3, progress=progress, tuner=tuner) as result:
        assert_type(result, Result)
        y: NDArray[np.float32] = hone.run("rms_norm", x, w, eps=1e-5)
        assert y.shape == (8, 64)
    assert_type(result[0], Decision)
    for decision in result:
        assert_type(decision.config, dict[str, Any])
    result.save(folder / "result.json")
    assert_type(Result.load(folder / "result.json"), Result)
    assert_type(hone.decide("rms_norm", x, w).kernel, str)
    assert_type(hone.explain("rms_norm", x, w), str)
    with hone.override("rms_norm", "portable") as context, hone.policy("heuristic"):
        assert_type(context, Context)
        hone.run("rms_norm", x, w)
    with hone.context(links={"transfer": link, "store": None}, persist=False):
        hone.run("rms_norm", x, w)
    plan = hone.bind("rms_norm", x, w)
    plan(x, w)
    with hone.Runtime(store="memory:", policy="heuristic", threads=1) as runtime:
        before = hone.use(runtime)
        assert_type(before, hone.Runtime | None)
        assert_type(runtime.decide("softmax(f32[4,8])"), Decision)
        hone.use(before)
    assert_type(hone.stats().hits, int)
    for name in hone.registry.algorithms():
        assert_type(hone.registry.kernels(name)[0].name, str)
    try:
        hone.run("rms_norm", x)
    except hone.InvalidArgumentError as error:
        assert_type(error.where, str | None)
    written = hone.pack(folder / "pack", "typed_scale")
    assert_type(written.lost, list[str])
    print("typed")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
