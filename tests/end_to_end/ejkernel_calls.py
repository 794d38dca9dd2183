"""Calls operations of the real ejkernel, as one of its users would: python ejkernel_calls.py FOLDER, with EJKERNEL_OPS_RECORD=1 and
EJKERNEL_OPS_STAMP=hash. Writes program.mlir and program.hlo, what was lowered; and calls.json, by examples/ejkernel_record.py. A helper of test_ejkernel.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))

import ejkernel_record
import jax
import jax.numpy as jnp
from ejkernel.modules import attention, flash_attention, mean_pooling, recurrent_attention, rwkv4, scaled_dot_product_attention


def program(q, k, x, w):
    wide, channels = attention(q, k, k, causal=True)[0], q[:, :, 0]
    return {
        "flash_attention": flash_attention(q, k, k, causal=True, softmax_scale=0.25, platform="xla"),
        "scaled_dot_product_attention": scaled_dot_product_attention(q, k, k, causal=True, platform="xla"),
        "attention": wide,
        "mean_pooling": mean_pooling(x, chunk_size=16, platform="xla"),
        "rwkv4": rwkv4(w, w, channels, channels, platform="xla")[0],
        "recurrent_attention": recurrent_attention(q, q, q, platform="xla")[0],
    }


def main(folder):
    arrays = jnp.ones((1, 32, 4, 16)), jnp.ones((1, 32, 2, 16)), jnp.ones((2, 64, 24)), jnp.ones(16)
    lowered = jax.jit(program).lower(*arrays)
    (folder / "program.mlir").write_text(lowered.as_text(debug_info=True))
    (folder / "program.hlo").write_text(lowered.as_text("hlo", debug_info=True))
    ejkernel_record.dump(folder / "calls.json")


main(pathlib.Path(sys.argv[1]))
