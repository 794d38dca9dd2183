"""A program of ejkernel's, as one of its users would write it: python ejkernel_program.py, with EJKERNEL_PERSISTENT_CACHE_DIR. Prints, as
JSON, what its executors were given to run with, and whether they asked their tuner. A helper of test_ejkernel.
"""

import dataclasses
import json
import sys
import types

import jax
import jax.numpy as jnp


def program():
    """The operations that a program calls, each as a function without arguments."""
    from ejkernel.modules import attention, flash_attention, mean_pooling, rwkv4, scaled_dot_product_attention

    q, k, x, w = jnp.ones((1, 32, 4, 16)), jnp.ones((1, 24, 2, 16)), jnp.ones((2, 64, 24)), jnp.ones(16)
    channels = q[:, :, 0]
    return {
        "flash_attention": lambda: flash_attention(q, k, k, causal=True, softmax_scale=0.3),
        "scaled_dot_product_attention": lambda: scaled_dot_product_attention(q, k, k, causal=True),
        "attention": lambda: attention(q, k, k, causal=True)[0],
        "mean_pooling": lambda: mean_pooling(x, chunk_size=16),
        "rwkv4": lambda: rwkv4(w, w, channels, channels),
    }


def plain(config):
    if isinstance(config, types.SimpleNamespace) or hasattr(config, "__dict__") and not dataclasses.is_dataclass(config):
        return vars(config)
    return dataclasses.asdict(config)


def main():
    from ejkernel.modules import operations
    from ejkernel.ops import Tuner

    ran, tuned = {}, []
    kernels = {"flash_attention": operations.FlashAttention, "scaled_dot_product_attention": operations.ScaledDotProductAttention,
               "attention": operations.Attention, "mean_pooling": operations.MeanPooling, "rwkv4": operations.RWKV4}
    for name, kernel in kernels.items():
        def run(self, *args, cfg, name=name, original=kernel.run, **keywords):
            ran[name] = plain(cfg)
            return original(self, *args, cfg=cfg, **keywords)

        kernel.run = run
    Tuner.autotune = lambda self, *args, **keywords: tuned.append(args)
    programs = {}
    for name, call in program().items():
        jax.block_until_ready(call())
        programs[name] = jax.jit(call).lower().as_text()
    json.dump({"ran": ran, "tuned": len(tuned), "programs": programs}, sys.stdout)


if __name__ == "__main__":
    main()
