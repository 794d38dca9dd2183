"""The programs that bench_read reads, and its peers: the parsers of MLIR and of XLA, as jaxlib has them.

    lowered.py make PACKAGES FOLDER     PACKAGES: where jax is. Lowers a gradient of 225 labelled layers, 3 MB as text, and many small functions
    lowered.py parse PACKAGES FOLDER    parses each program a few times, and prints its name and the median of the nanoseconds

Programs that are there are not made again.
"""

import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, sys.argv[2])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "end_to_end"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import lower  # noqa: E402
from jax import export  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

LAYERS = 225
FUNCTIONS = 400
READS = 5


def layer(x, w, a, b):
    h = lower.rms_norm(x, w)
    q, k = lower.matmul(h, a), lower.matmul(h, a + 1)
    s = lower.softmax(lower.matmul(q, k.T))
    return x + lower.matmul(jax.nn.silu(s @ q), b)


def block(x, w, a, b):
    for i in range(LAYERS):
        x = layer(x, w, a[i], b[i])
    return x.sum()


def small(x, w, a, b):
    for i in range(FUNCTIONS):
        x = jax.jit(lambda x, i=i: layer(x * i, w, a, b))(x)  # a function of its own each time
    return x


def arrays(*shapes):
    return [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "small.mlir").exists():
        return
    step = jax.jit(jax.value_and_grad(block, (0, 1, 2, 3)))
    args = arrays((8, 64), (64,), (LAYERS, 64, 128), (LAYERS, 128, 64))
    lowered, exported = step.lower(*args), export.export(step)(*args)
    (folder / "block.mlir").write_text(lowered.as_text(debug_info=True))
    (folder / "block.bc").write_bytes(mlir.module_to_bytecode(lowered.compiler_ir("stablehlo")))
    (folder / "block.portable.bc").write_bytes(exported.mlir_module_serialized)
    (folder / "block.export").write_bytes(bytes(exported.serialize()))
    (folder / "block.hlo.txt").write_text(lowered.as_text("hlo", debug_info=True))
    (folder / "block.hlo.pb").write_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    text = jax.jit(small).lower(*arrays((8, 64), (64,), (64, 128), (128, 64))).as_text(debug_info=True)
    (folder / "small.mlir").write_text(text)


def parse_text(text):
    return ir.Module.parse(text, mlir.make_ir_context())


def parse_portable(artifact):
    return stablehlo.deserialize_portable_artifact(mlir.make_ir_context(), artifact)


PARSERS = {
    "block.mlir": lambda b: parse_text(b.decode()),
    "small.mlir": lambda b: parse_text(b.decode()),
    "block.bc": parse_text,
    "block.portable.bc": parse_portable,
    "block.export": lambda b: parse_portable(export.deserialize(bytearray(b)).mlir_module_serialized),
    "block.hlo.pb": xla_client.XlaComputation,
}


def measure(parse, program):
    start = time.perf_counter_ns()
    parse(program)
    return time.perf_counter_ns() - start


def main():
    folder = pathlib.Path(sys.argv[3])
    if sys.argv[1] == "make":
        return make(folder)
    for name, parse in PARSERS.items():
        program = (folder / name).read_bytes()
        print(name, statistics.median(measure(parse, program) for _ in range(READS)))


main()
