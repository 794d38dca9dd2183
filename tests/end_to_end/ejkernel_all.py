"""Calls each operation of the real ejkernel once, as one of its users would: python ejkernel_all.py FOLDER [OPERATION...], with EJKERNEL_OPS_RECORD=1
and EJKERNEL_OPS_STAMP=hash. Writes OPERATIONS.mlir, what was lowered, calls.json, by examples/ejkernel_record.py, and failed.json, what
ejkernel itself did not lower, with its words. A helper of test_ejkernel.
"""

import functools
import json
import os
import pathlib
import sys

os.environ["EJKERNEL_AUTOTUNE_POLICY"] = "heuristics"

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))

import ejkernel.modules as modules
import ejkernel.modules.operations as operations
import ejkernel_record
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

F, I, U = jnp.float32, jnp.int32, jnp.uint8


def a(*shape, dtype=F):
    return jax.ShapeDtypeStruct(shape, dtype)


HEADS = a(1, 32, 4, 16)
GATE, ROW = a(1, 32, 4), a(1, 32, 24)
QUERIES, PAGES, KV = a(16, 4, 16), a(8, 4, 2, 16), a(16, 2, 16)
LENS, TABLES, STARTS = a(2, dtype=I), a(2, 4, dtype=I), a(3, dtype=I)
LATENT = (a(1, 16, 4, 16), a(1, 16, 32), a(32, 2, 16), a(32, 2, 16))
MLA_PAGES = (a(16, 4, 128), a(16, 4, 64), a(16, 128), a(16, 64), a(8, 4, 1, 256), LENS, a(8, dtype=I), STARTS, a(3, dtype=I))
QUANTS = (a(8, 4, 2, 8, dtype=U), a(8, 4, 2, 2, dtype=U), a(8, 4, 2, 2), a(8, 4, 2, 8, dtype=U), a(8, 4, 2))
BOOKS = (a(16, 16), a(16, 16), a(8), a(16))


def across(function, x, y):
    """On a mesh of one device."""
    mesh = Mesh(jax.devices()[:1], ("tp",))
    specs = (PartitionSpec(), PartitionSpec())
    return jax.shard_map(lambda one, other: function(one, other, "tp", platform="xla"), mesh=mesh, in_specs=specs, out_specs=PartitionSpec(),
                         check_vma=False)(x, y)


def plain(name, *arrays, **scalars):
    return functools.partial(getattr(modules, name), platform="xla", **scalars), arrays


def own(name, *arrays, **scalars):
    """An operation that ejkernel.modules has no function for."""
    from ejkernel.ops import ConfigCache, ConfigSelectorChain, Executor

    executor = Executor(ConfigSelectorChain(cache=ConfigCache()))
    return functools.partial(executor, getattr(operations, name)(), platform="xla", **scalars), arrays


CALLS = {
    "all_gather_matmul": lambda: (functools.partial(across, modules.all_gather_matmul), (a(16, 32), a(32, 16))),
    "attention": lambda: (functools.partial(modules.attention, causal=True), (HEADS, HEADS, HEADS)),
    "blocksparse_attention": lambda: plain("blocksparse_attention", *[a(1, 4, 128, 32)] * 3),
    "chunked_prefill_paged_decode": lambda: plain("chunked_prefill_paged_decode", QUERIES, KV, KV, PAGES, PAGES, LENS, TABLES, STARTS),
    "decode_attention": lambda: plain("decode_attention", a(2, 4, 16), a(32, 2, 16), a(32, 2, 16), a(2, 16, dtype=I), LENS),
    "deepseek_attn": lambda: plain("deepseek_attn", *LATENT, a(1, 16, 2, 16), a(1, 16, 16), a(1, 16, 2), a(1, 16, 8), a(1, 16, 8), index_topk=8),
    "flash_attention": lambda: plain("flash_attention", HEADS, HEADS, HEADS, causal=True),
    "flash_mla": lambda: plain("flash_mla", *LATENT, a(1, 16, 8), a(1, 16, 8), causal=True),
    "fused_cross_entropy": lambda: own("FusedCrossEntropy", a(16, 64), a(16, dtype=I)),
    "fused_kl_divergence": lambda: own("FusedKLDivergence", a(16, 64), a(16, 64)),
    "gated_delta_rule": lambda: plain("gated_delta_rule", HEADS, HEADS, HEADS, GATE, GATE),
    "gla": lambda: plain("gla_attention", HEADS, HEADS, HEADS, HEADS),
    "grouped_matmul": lambda: plain("grouped_matmul", a(64, 32), a(4, 32, 16), a(4, dtype=I)),
    "grouped_matmulv2": lambda: plain("grouped_matmul", a(64, 32), a(4, 32, 16), a(4, dtype=I), use_v2=True),
    "grouped_matmulv3": lambda: plain("grouped_matmul", a(64, 32), a(4, 32, 16), a(4, dtype=I), use_v3=True),
    "kernel_delta_attention": lambda: plain("kernel_delta_attention", HEADS, HEADS, HEADS, GATE, GATE, chunk_size=16),
    "lightning_attn": lambda: plain("lightning_attention", HEADS, HEADS, HEADS, layer_idx=1, num_layers=4),
    "mean_pooling": lambda: plain("mean_pooling", a(2, 64, 24), chunk_size=16),
    "multi_latent_ragged_page_attention": lambda: plain("multi_latent_ragged_page_attention", *MLA_PAGES, softmax_scale=0.125),
    "multi_latent_ragged_page_attention_v2": lambda: plain("multi_latent_ragged_page_attention_v2", *MLA_PAGES, softmax_scale=0.125),
    "native_sparse_attention": lambda: plain("native_sparse_attention", a(1, 64, 16, 16), a(1, 64, 1, 16), a(1, 64, 1, 16), a(1, 64, 16), a(1, 64, 16),
                                             a(1, 64, 1, 4, dtype=I), 4),
    "page_attention": lambda: plain("page_attention", a(2, 4, 16), a(8, 2, 4, 16), a(8, 2, 4, 16), LENS, TABLES),
    "prefill_page_attention": lambda: plain("prefill_page_attention", a(8, 4, 16), a(2, 8, 4, 16), a(2, 8, 4, 16), a(1, dtype=I), a(4, dtype=I)),
    "quantized_matmul": lambda: plain("quantized_matmul", a(16, 64), a(64, 4, dtype=jnp.uint32), a(64, 1), a(64, 1), group_size=32, bits=4),
    "ragged_decode_attention": lambda: plain("ragged_decode_attention", a(2, 4, 16), a(2, 32, 2, 16), a(2, 32, 2, 16), LENS, LENS),
    "ragged_gated_delta_rule": lambda: plain("ragged_gated_delta_rule", QUERIES, QUERIES, QUERIES, a(16, 4), a(16, 4), a(2, 4, 16, 16), STARTS, LENS),
    "ragged_page_attention_v2": lambda: plain("ragged_page_attention_v2", QUERIES, a(8, 4, 4, 16), LENS, TABLES, STARTS, 2),
    "ragged_page_attention_v2_turboquant": lambda: plain("ragged_page_attention_v2_turboquant", QUERIES, *QUANTS, LENS, TABLES, STARTS, 2, *BOOKS,
                                                         qjl_dim=16),
    "ragged_page_attention_v3": lambda: plain("ragged_page_attention_v3", a(16, 4, 128), a(16, 2, 128), a(16, 2, 128), a(8, 4, 4, 1, 128), LENS,
                                              a(8, dtype=I), STARTS, a(3, dtype=I)),
    "ragged_page_attention_v3_turboquant": lambda: plain("ragged_page_attention_v3_turboquant", QUERIES, KV, KV, *QUANTS, LENS, a(8, dtype=I), STARTS,
                                                         a(3, dtype=I), *BOOKS, qjl_dim=16),
    "recurrent": lambda: plain("recurrent_attention", HEADS, HEADS, HEADS),
    "reduce_scatter_matmul": lambda: (functools.partial(across, modules.reduce_scatter_matmul), (a(16, 32), a(16, 32))),
    "ring_attention": lambda: plain("ring_attention", HEADS, HEADS, HEADS, causal=True),
    "rwkv4": lambda: plain("rwkv4", a(16), a(16), a(1, 32, 16), a(1, 32, 16)),
    "rwkv6": lambda: plain("rwkv6", HEADS, HEADS, HEADS, HEADS, a(4, 16)),
    "rwkv7": lambda: plain("rwkv7", *[HEADS] * 6),
    "rwkv7_mul": lambda: plain("rwkv7_mul", *[HEADS] * 6),
    "scaled_dot_product_attention": lambda: plain("scaled_dot_product_attention", HEADS, HEADS, HEADS, causal=True),
    "state_space_v1": lambda: plain("state_space_v1", ROW, a(24, 8), a(1, 32, 8), a(1, 32, 8), a(24), ROW),
    "state_space_v2": lambda: plain("state_space_v2", HEADS, a(4), a(1, 32, 1, 8), a(1, 32, 1, 8), a(4), GATE),
    "unified_attention": lambda: plain("unified_attention", QUERIES, PAGES, PAGES, LENS, TABLES, STARTS),
}


def main(folder, names):
    failed = {}
    for name in names or CALLS:
        function, arrays = CALLS[name]()
        try:
            lowered = jax.jit(function).lower(*arrays)
        except Exception as error:  # ejkernel's own
            failed[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        (folder / f"{name}.mlir").write_text(lowered.as_text(debug_info=True))
    ejkernel_record.dump(folder / "calls.json")
    (folder / "failed.json").write_text(json.dumps(failed, indent=1))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
