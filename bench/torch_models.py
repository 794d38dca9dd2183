"""What an eager forward of a model costs after hone.torch.replace, beside the same model before it: single layers and small models, whose
kernels take so little that what is around them is seen.

    PYTHONPATH=build/python:build-python/torch-cpu:build-python python3 bench/torch_models.py [--json] [--profile ROW] [ROW...]

A row is a model in a mode (inference, no_grad, grad: forward and backward). Takes turns in rounds in one process, on one thread. A ratio is that of the
medians, its interval of a bootstrap over the rounds.
"""

import contextlib
import copy
import json
import os
import statistics
import sys
import time

os.environ.setdefault("HONE_STORE", "none")

import torch  # noqa: E402
from torch import nn  # noqa: E402

import hone.torch  # noqa: E402
from torch_calls import ratio  # noqa: E402

ROUNDS, ROUND_NS = 61, 1_500_000  # of one round of one side


class RMSNorm(nn.Module):
    """As models write it themselves."""

    def __init__(self, dim):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.rand(dim)), 1e-6

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class GatedMLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), heads

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        made = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(made.transpose(1, 2).reshape(batch, length, dim))


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.attention, self.norm2, self.mlp = nn.LayerNorm(dim), Attention(dim, 4), nn.RMSNorm(dim), GatedMLP(dim, 2 * dim)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


# Name, what makes the model, the shape of what it is given.
MODELS = (
    ("linear", lambda: nn.Linear(64, 64), (1, 64)),
    ("linear, 3 dims", lambda: nn.Linear(64, 64), (1, 8, 64)),
    ("layer norm", lambda: nn.LayerNorm(64), (1, 64)),
    ("rms norm", lambda: nn.RMSNorm(64), (1, 64)),
    ("rms norm of the program", lambda: RMSNorm(64), (1, 64)),
    ("softmax", lambda: nn.Softmax(-1), (1, 64)),
    ("gated mlp", lambda: GatedMLP(64, 128), (1, 64)),
    ("mlp", lambda: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)), (1, 64)),
    ("transformer of 2 layers", lambda: nn.Sequential(Block(64), Block(64)), (1, 8, 64)),
)
MODES = {"inference": torch.inference_mode, "no_grad": torch.no_grad, "grad": contextlib.nullcontext}


def rows():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    for name, make, shape in MODELS:
        for mode, entered in MODES.items():
            before = make().eval()
            after = copy.deepcopy(before)
            hone.torch.replace(after)
            x = torch.rand(shape).requires_grad_(mode == "grad")
            yield f"{name}, {mode}", entered, forward(before, x, mode), forward(after, x, mode)


def forward(model, x, mode):
    if mode != "grad":
        return lambda: model(x)
    return lambda: model(x).sum().backward()


def measure(entered, call, count):
    with entered():
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        return (time.perf_counter_ns() - start) / count


def main():
    wanted = [one for one in sys.argv[1:] if not one.startswith("--")]
    made = []
    for name, entered, torchs, hones in rows():
        if wanted and not any(one in name for one in wanted):
            continue
        for call in (torchs, hones):
            measure(entered, call, 200)
        if "--profile" in sys.argv:
            import cProfile

            with cProfile.Profile() as profile:
                measure(entered, hones, 20000)
            print(name)
            profile.print_stats("tottime")
            continue
        # Rounds of one length: on a busy machine the scheduler takes time from long ones.
        counts = [max(2, int(ROUND_NS / min(measure(entered, call, 40) for _ in range(9)))) for call in (hones, torchs)]
        times = [[], []]
        for _ in range(ROUNDS):
            for of, call, count in zip(times, (hones, torchs), counts):
                of.append(measure(entered, call, count))
        ours, low, high = ratio(*times)
        row = {"name": name, "hone_ns": statistics.median(times[0]), "torch_ns": statistics.median(times[1]), "ratio": ours, "low": low, "high": high}
        made.append(row)
        if "--json" not in sys.argv:
            print(f"{name:36} torch {row['torch_ns'] / 1e3:8.2f} us, hone {row['hone_ns'] / 1e3:8.2f} us: {ours:.2f} ({low:.2f} to {high:.2f})", flush=True)
    if "--json" in sys.argv:
        print(json.dumps(made, indent=1))


main()
