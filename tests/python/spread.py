"""One rank of two, whose tensors are DTensors: operations of hone.torch over every placement of their arrays, beside what they give of plain
tensors. Prints a line for each that differs, and which results lie spread.

    python spread.py RANK SIZE FILE
"""

import itertools
import sys

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh

import hone
import hone.torch

rank, size = map(int, sys.argv[1:3])
torch.set_num_threads(1)
torch.manual_seed(3)
ops = hone.torch.ops


def r(*shape):
    return torch.randn(shape)


# The operation, its arrays by place, and its other arguments.
CALLS = [
    (ops.rms_norm, (r(4, 3, 8), r(8)), {}),
    (ops.layer_norm, (r(4, 8), r(8), r(8)), {"eps": 1e-5}),
    (ops.layer_norm, (r(4, 8), None, r(8)), {}),
    (ops.softmax, (r(4, 8),), {"scale": 0.5}),
    (ops.silu_mul, (r(4, 8), r(4, 8)), {}),
    (ops.matmul, (r(8, 8), r(8, 8)), {}),
    (ops.matmul, (r(8, 8), r(8, 8)), {"transpose_b": True}),
    (ops.matmul, (r(4, 6), r(6, 8), r(8), None), {}),
    (ops.matmul, (r(4, 6), r(6, 8), None, r(4, 8)), {"activation": "relu"}),
    (ops.matmul, (r(2, 4, 6), r(2, 6, 8)), {}),
    (ops.rope, (r(2, 4, 2, 8), r(4, 4), r(4, 4)), {}),
    (ops.scaled_dot_product_attention, (r(2, 6, 4, 8), r(2, 6, 2, 8), r(2, 6, 2, 8)), {"axes": "bshd", "causal": True}),
    (ops.scaled_dot_product_attention, (r(2, 4, 6, 8), r(2, 4, 6, 8), r(2, 4, 6, 8)), {"axes": "bhsd"}),
    (ops.scaled_dot_product_attention, (r(2, 6, 6, 8), r(2, 3, 6, 8), r(2, 3, 6, 8)), {"axes": "bhsd"}),  # 3 heads are not split into 2
    (ops.mean_pooling, (r(2, 64, 8),), {}),
    (ops.gated_linear_unit, (r(4, 8), r(8, 2, 6)), {}),
]
CONSTANT = {"rope": (1, 2)}  # arrays without a gradient
NONE = ("mean_pooling", "gated_linear_unit")


def placements(tensor):
    return [None] if tensor is None else [Replicate(), Partial(), *map(Shard, range(tensor.dim()))]


def every(arrays):
    """All placements of up to two arrays, and of more each with its like, one after the other."""
    each = [placements(one) for one in arrays]
    if len(arrays) < 3:
        return [*itertools.product(*each)]
    longest = max(map(len, each))
    return [tuple(one[min(i, len(one) - 1)] for one in each) for i in range(longest)] + [tuple(one[-1 if i == at else 0] for i, one in enumerate(each)) for at in range(len(each))]


def spread(tensor, placement):
    if not isinstance(placement, Partial):
        return distribute_tensor(tensor, mesh, [placement])
    return DTensor.from_local(tensor if rank == 0 else torch.zeros_like(tensor), mesh, [placement])


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def gradients(operation, arrays, keywords, like=None):
    """The result and the gradients of a sum that weighs its elements."""
    name = str(operation).rpartition(".")[2]
    asked = [i for i, one in enumerate(arrays) if one is not None and i not in CONSTANT.get(name, ())]
    arrays = [one.detach().requires_grad_(i in asked) if one is not None else None for i, one in enumerate(arrays)]
    if name in NONE or "activation" in keywords:
        with torch.no_grad():
            return operation(*arrays, **keywords), []
    made = operation(*arrays, **keywords)
    weights = torch.arange(made.numel(), dtype=torch.float32).reshape(made.shape).cos()
    weights = distribute_tensor(weights, mesh, [Replicate()]) if isinstance(made, DTensor) else weights
    (made * weights).sum().backward()
    return made, [arrays[i].grad for i in asked]


dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=size)
mesh = init_device_mesh("cpu", (size,))
lies = {}
for operation, arrays, keywords in CALLS:
    expected, wanted = gradients(operation, arrays, keywords)
    for places in every(arrays):
        given = [None if one is None else spread(one, place) for one, place in zip(arrays, places)]
        made, found = gradients(operation, given, keywords)
        pairs = zip([made, *found], [expected, *wanted])
        if not all(torch.allclose(whole(one), other, rtol=1e-4, atol=1e-4) for one, other in pairs):
            print("differs:", operation, places, keywords, flush=True)
        lies.setdefault(str(operation), set()).add(str(made.placements[0]))
for operation, places in lies.items():
    print(operation, *sorted(places))


def block(x, w, b):
    return ops.silu_mul(ops.matmul(ops.rms_norm(x, w), b), ops.matmul(x, b))


arrays = r(4, 6), r(6), r(6, 8)
made = torch.compile(block, backend="aot_eager", fullgraph=True)(*map(spread, arrays, (Shard(0), Replicate(), Shard(1))))
print("compiled", torch.allclose(whole(made), block(*arrays), atol=1e-4))
asked = []
with hone.context(links={"store": lambda call: asked.append(call.text)}):
    ops.rms_norm(spread(r(10, 16), Shard(0)), spread(r(16), Replicate()))
print("asked", *asked)
try:
    ops.softmax(spread(r(4, 8), Replicate()), y=spread(r(4, 8), Replicate()))
except Exception as error:  # DTensor puts words of its own around it
    print(str(error).splitlines()[0])
dist.destroy_process_group()
