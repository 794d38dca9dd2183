"""Functions of Triton as kernels: by a decorator, by an example, and the kinds of Triton's tutorials."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

import hone
import hone.triton
from support import HoneTest

CACHE = tempfile.TemporaryDirectory(prefix="hone-cache-")
os.environ["XDG_CACHE_HOME"] = CACHE.name
os.environ["TRITON_CACHE_DIR"] = f"{CACHE.name}/triton"


# Kernels of the kinds of Triton's tutorials, each with what launches it --------------------------------------------------


@triton.jit
def add_blocks(x_ptr, y_ptr, output_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n_elements
    tl.store(output_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


def add(x, y):
    out = torch.empty_like(x)
    add_blocks[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](x, y, out, out.numel(), BLOCK=1024)
    return out


@triton.jit
def softmax_rows(output_ptr, input_ptr, input_row_stride, output_row_stride, n_rows, n_cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):
        at = tl.arange(0, BLOCK)
        value = tl.load(input_ptr + row * input_row_stride + at, mask=at < n_cols, other=-float("inf"))
        top = tl.exp(value - tl.max(value, axis=0))
        tl.store(output_ptr + row * output_row_stride + at, top / tl.sum(top, axis=0), mask=at < n_cols)


def softmax(x):
    y = torch.empty_like(x)
    rows, columns = x.shape
    softmax_rows[(rows, 1, 1)](y, x, x.stride(0), y.stride(0), rows, columns, BLOCK=triton.next_power_of_2(columns), STAGES=2, num_warps=4)
    return y


@triton.autotune(configs=[triton.Config({"BM": 32, "BN": 32, "BK": 32, "GROUP": 4}, num_warps=4, num_stages=2),
                          triton.Config({"BM": 64, "BN": 32, "BK": 32, "GROUP": 8}, num_warps=4, num_stages=3)], key=["M", "N", "K"])
@triton.jit
def product_tiles(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, BM: tl.constexpr,
                  BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tile = tl.program_id(0)
    in_group = GROUP * tl.cdiv(N, BN)
    first = tile // in_group * GROUP
    size = min(tl.cdiv(M, BM) - first, GROUP)
    m = (first + tile % in_group % size) * BM + tl.arange(0, BM)
    n = (tile % in_group // size) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * stride_am + (at + k)[None, :] * stride_ak, mask=(m[:, None] < M) & ((at + k)[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (at + k)[:, None] * stride_bk + n[None, :] * stride_bn, mask=((at + k)[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn, total.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


def product(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)  # noqa: E731
    product_tiles[grid](a, b, c, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1))
    return c


@triton.jit
def dropout_blocks(x_ptr, keep_ptr, output_ptr, n_elements, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n_elements
    value = tl.load(x_ptr + at, mask=inside)
    tl.store(output_ptr + at, tl.where(tl.load(keep_ptr + at, mask=inside) != 0, value / (1 - p), 0.0), mask=inside)


def dropout(x, keep, p):
    out = torch.empty_like(x)
    dropout_blocks[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, keep, out, x.numel(), p, BLOCK=1024)
    return out


@triton.jit
def norm_rows(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(X + row * stride + at, mask=at < N, other=0.0)
    mean = tl.sum(value, axis=0) / N
    centred = tl.where(at < N, value - mean, 0.0)
    factor = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, factor)
    tl.store(Y + row * stride + at, centred * factor * tl.load(W + at, mask=at < N) + tl.load(B + at, mask=at < N), mask=at < N)


def layer_norm(x, weight, bias, eps):
    y, (rows, columns) = torch.empty_like(x), x.shape
    mean, rstd = torch.empty(rows), torch.empty(rows)
    norm_rows[(rows,)](x, y, weight, bias, mean, rstd, x.stride(0), columns, eps, BLOCK=triton.next_power_of_2(columns))
    return y, mean, rstd


@triton.jit
def attention_rows(Q, K, V, Out, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(1) * N * D
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + start + m[:, None] * D + d[None, :], mask=m[:, None] < N, other=0.0)
    top, total = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for at in range(0, N, BN):
        n = at + tl.arange(0, BN)
        k = tl.load(K + start + n[None, :] * D + d[:, None], mask=n[None, :] < N, other=0.0)
        s = tl.where(n[None, :] < N, tl.dot(q, k) * scale, -float("inf"))
        high = tl.maximum(top, tl.max(s, axis=1))
        p, keep = tl.exp(s - high[:, None]), tl.exp(top - high)
        v = tl.load(V + start + n[:, None] * D + d[None, :], mask=n[:, None] < N, other=0.0)
        sums, total, top = tl.dot(p.to(tl.float16), v, sums * keep[:, None]), total * keep + tl.sum(p, axis=1), high
    tl.store(Out + start + m[:, None] * D + d[None, :], (sums / total[:, None]).to(tl.float16), mask=m[:, None] < N)


def attention(q, k, v, scale):
    out, (heads, length, dim) = torch.empty_like(q), q.shape
    attention_rows[lambda meta: (triton.cdiv(length, meta["BM"]), heads)](q, k, v, out, length, scale, D=dim, BM=64, BN=32)
    return out


@triton.jit
def asin_blocks(x_ptr, y_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, libdevice.asin(tl.load(x_ptr + at, mask=at < n_elements)), mask=at < n_elements)


def asin(x):
    y = torch.empty_like(x)
    asin_blocks[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), BLOCK=1024)
    return y


@triton.jit
def grouped_tiles(A, B, C, sizes, groups, BLOCK: tl.constexpr):
    for group in range(groups):
        a, c = tl.load(A + group).to(tl.pointer_type(tl.float16)), tl.load(C + group).to(tl.pointer_type(tl.float16))
        at = tl.arange(0, BLOCK)
        tl.store(c + at, tl.load(a + at, mask=at < tl.load(sizes + group)), mask=at < tl.load(sizes + group))


def grouped(a, b):
    out = [torch.empty_like(one) for one in a]
    places = [torch.tensor([one.data_ptr() for one in group]) for group in (a, b, out)]
    grouped_tiles[(4,)](*places, torch.tensor([one.numel() for one in a]), len(a), BLOCK=1024)
    return out


@triton.jit
def persistent_tiles(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NUM_SMS: tl.constexpr):
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, NUM_SMS, flatten=True):
        m, n, k = tile // columns * BM + tl.arange(0, BM), tile % columns * BN + tl.arange(0, BN), tl.arange(0, BK)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for at in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * K + (at + k)[None, :], mask=(m[:, None] < M) & ((at + k)[None, :] < K), other=0.0)
            b = tl.load(b_ptr + (at + k)[:, None] * N + n[None, :], mask=((at + k)[:, None] < K) & (n[None, :] < N), other=0.0)
            total = tl.dot(a, b, total)
        tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


def persistent(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=torch.float16)
    grid = lambda meta: (min(meta["NUM_SMS"], triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"])),)  # noqa: E731
    persistent_tiles[grid](a, b, c, m, n, k, BM=32, BN=32, BK=32, NUM_SMS=2)
    return c


@triton.jit
def scaled_tiles(a_desc, scale_ptr, c_ptr, K, BM: tl.constexpr, BK: tl.constexpr):
    at = tl.program_id(0) * BM
    a = a_desc.load([at, 0])
    tl.store(c_ptr + (at + tl.arange(0, BM))[:, None] * K + tl.arange(0, BK)[None, :], a * tl.load(scale_ptr))


def scaled(a, scale):
    c = torch.empty_like(a)
    rows, columns = a.shape
    scaled_tiles[(rows // 16,)](TensorDescriptor.from_tensor(a, [16, columns]), scale, c, columns, BM=16, BK=columns)
    return c


def set_blocks(nargs):
    nargs["a_desc"].block_shape = [nargs["BM"], nargs["BK"]]
    nargs["b_desc"].block_shape = [nargs["BN"], nargs["BK"]]
    nargs["c_desc"].block_shape = [nargs["BM"], nargs["BN"] // 2 if nargs["HALVES"] else nargs["BN"]]


@triton.autotune(configs=[triton.Config({"BM": 64, "BN": 64, "BK": 64, "HALVES": True}, num_warps=4, num_stages=2, pre_hook=set_blocks),
                          triton.Config({"BM": 128, "BN": 64, "BK": 32, "HALVES": False}, num_warps=8, num_stages=2, pre_hook=set_blocks)], key=["M", "N", "K"])
@triton.jit
def described_tiles(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr):
    across = tl.cdiv(N, BN)
    m, n = tl.program_id(0) // across * BM, tl.program_id(0) % across * BN
    total = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        total = tl.dot(a_desc.load([m, at]), b_desc.load([n, at]).T, total)
    if HALVES:
        low, high = tl.split(tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1)))
        c_desc.store([m, n], low.to(tl.float16))
        c_desc.store([m, n + BN // 2], high.to(tl.float16))
    else:
        c_desc.store([m, n], total.to(tl.float16))


def described_product(a, b):
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty((m, n), dtype=a.dtype)
    one = [1, 1]
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)  # noqa: E731
    described_tiles[grid](*(TensorDescriptor.from_tensor(tensor, one) for tensor in (a, b, c)), m, n, k)
    return c


def whole_transposed(a, b):
    return a @ b.T


def whole_add(x, y):
    return x + y


def whole_softmax(x):
    return torch.softmax(x, dim=-1)


def whole_product(a, b):
    return a @ b


def whole_dropout(x, keep, p):
    return torch.where(keep != 0, x / (1 - p), torch.zeros_like(x))


def whole_norm(x, weight, bias, eps):
    mean = x.mean(-1)
    rstd = 1 / torch.sqrt(((x - mean[:, None]) ** 2).mean(-1) + eps)
    return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


def whole_attention(q, k, v, scale):
    return torch.softmax(q @ k.transpose(1, 2) * scale, -1) @ v


def whole_asin(x):
    return torch.asin(x)


def whole_grouped(a, b):
    return a


def whole_scaled(a, scale):
    return a * scale


H = torch.float16
ONE_BLOCK = [{"BLOCK": 512, "num_warps": 4}, {"BLOCK": 1024, "num_warps": 8}]
TUTORIALS = {
    "01 vector addition": (add, whole_add, (torch.ones(1000), torch.ones(1000)), ONE_BLOCK,
                           "t_add(x: f32[n], y: f32[n]) -> y_out: f32[n]", ["ceildiv(n, BLOCK)"]),
    "02 fused softmax": (softmax, whole_softmax, (torch.ones(20, 300),), None, "t_softmax(x: f32[m, n]) -> y: f32[m, n]", ["m"]),
    "03 matrix multiplication": (product, whole_product, (torch.ones(48, 80, dtype=H), torch.ones(80, 112, dtype=H)), None,
                                 "t_product(a: f16[m, n], b: f16[n, k]) -> y: f16[m, k]", ["ceildiv(m, BM) * ceildiv(k, BN)"]),
    "04 low-memory dropout": (dropout, whole_dropout, (torch.ones(1000), torch.ones(1000, dtype=torch.int32), 0.5), ONE_BLOCK,
                              "t_dropout(x: f32[n], keep: i32[n], *, p: f64) -> y: f32[n]", ["ceildiv(n, BLOCK)"]),
    "05 layer normalization": (layer_norm, whole_norm, (torch.ones(20, 300), torch.ones(300), torch.ones(300), 1e-5), None,
                               "t_layer_norm(x: f32[m, n], weight: f32[n], bias: f32[n], *, eps: f64) -> (y0: f32[m, n], y1: f32[m], y2: f32[m])", ["m"]),
    "06 fused attention": (attention, whole_attention, (*(torch.ones(3, 200, 64, dtype=H) for _ in range(3)), 0.125), None,
                           "t_attention(q: f16[m, n, k], k: f16[m, n, k], v: f16[m, n, k], *, scale: f64) -> y: f16[m, n, k]", ["ceildiv(n, BM)", "m"]),
    "07 functions of libdevice": (asin, whole_asin, (torch.ones(1000),), ONE_BLOCK, "t_asin(x: f32[n]) -> y: f32[n]", ["ceildiv(n, BLOCK)"]),
    "08 grouped products": (grouped, whole_grouped, ([torch.ones(64)], [torch.ones(64)]), None, None, "is a tensor that is neither in the example nor a result|no tensor is a result"),
    "09 persistent products": (persistent, whole_product, (torch.ones(48, 80, dtype=H), torch.ones(80, 112, dtype=H)), None,
                               "t_persistent(a: f16[m, n], b: f16[n, k]) -> y: f16[m, k]", ["NUM_SMS"]),
    "09 with descriptors": (described_product, whole_transposed, (torch.ones(192, 80, dtype=H), torch.ones(320, 80, dtype=H)), None,
                            "t_described_product(a: f16[m, n], b: f16[k, n]) -> y: f16[m, k]", ["ceildiv(m, BM) * ceildiv(k, BN)"]),
    "10 block-scaled products": (scaled, whole_scaled, (torch.ones(48, 32), torch.ones(1)), None,
                                 "t_scaled(a: f32[m, n], scale: f32[k]) -> y: f32[m, n]", ["ceildiv(m, BM)"]),
}


class Tutorials(HoneTest):
    def test_each_kind_of_tutorial_packs_or_says_why_not(self):
        for title, (function, reference, example, configs, signature, expected) in TUTORIALS.items():
            name = f"t_{function.__name__}"
            with self.subTest(title):
                if signature is None:
                    with self.assertRaisesRegex(hone.InvalidArgumentError, expected):
                        hone.triton.pack(function, example, configs, reference=reference, name=name)
                    continue
                packed = hone.triton.pack(function, example, configs, reference=reference, name=name, folder=self.folder / name)
                self.assertEqual((packed.signature, packed.grid), (signature, expected))
                rows = [row for row in json.loads((packed.folder / "pack.json").read_text())["kernels"] if row["platform"] == "triton"]
                self.assertTrue(rows and all((packed.folder / one["file"]).read_bytes()[:4] == b"\x7fELF" for row in rows for one in row["variants"]))
                self.assertIn("its reference is a function of Python", packed.lost[0])
                # The torch function is the reference of an algorithm like any other.
                arrays = [one for one in example if isinstance(one, torch.Tensor)]
                scalars = dict(zip(re.findall(r"(\w+): f64", signature), example[len(arrays):]))
                came = hone.run(name, *arrays, **scalars)
                torch.testing.assert_close(came, reference(*example), rtol=1e-2, atol=1e-2)


@triton.jit
def copied_tiles(x_desc, o_desc, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * ROWS
    o_desc.store([at, 0], x_desc.load([at, 0]))


def copied(x):
    return x * 1


class Descriptors(HoneTest):
    """Tensor descriptors that the host makes."""

    def lists(self, folder, part=""):
        rows = [row for row in json.loads((folder / "pack.json").read_text())["kernels"] if row["platform"] == "triton"]
        return [one["arguments"] for row in rows if not row["name"].endswith("_any") for one in row["variants"] if part in one["file"]]

    def test_a_decorator_reads_blocks_of_pre_hooks(self):
        @hone.algorithm("t_hooked(a: T[m, k], b: T[n, k]) -> c: T[m, n] where T in f16, bf16")
        def t_hooked(a, b):
            return a @ b.T

        hone.kernel("t_hooked", grid="ceildiv(m, BM) * ceildiv(n, BN)")(described_tiles)
        folder, _ = hone.pack(self.folder / "hooked", "t_hooked", target=90)
        lists = self.lists(folder, "_f16")
        self.assertEqual(lists[0][:5], ["map(a, 128, 64, 64)", "i32(m)", "i32(k)", "i64(k)", "i64(1)"])
        self.assertEqual(lists[0][10], "map(c, 64, 64, 32)")
        self.assertEqual(lists[1][10], "map(c, 128, 128, 64)")

    def test_a_text_says_the_block_where_no_hook_does(self):
        @hone.algorithm("t_said(x: T[..., n, d]) -> y: T[..., n, d] where T in f32, f16")
        def t_said(x):
            return x * 1

        hone.kernel("t_said", space="ROWS: 16 | 32; COLUMNS: 32", grid="ceildiv(x.size / max(d, 1), ROWS)", condition="d == COLUMNS",
                    arguments={"x_desc": "descriptor(x, ROWS, COLUMNS)", "o_desc": "descriptor(y, 2 * ROWS // 2, COLUMNS)"})(copied_tiles)
        folder, _ = hone.pack(self.folder / "said", "t_said", target=90)
        lists = self.lists(folder, "_f32")
        self.assertEqual(lists[0], ["map(x, 128, 16, 32)", "i32(x.size / max(d, 1))", "i32(d)", "i64(d)", "i64(1)",
                                    "map(y, 128, 16, 32)", "i32(y.size / max(d, 1))", "i32(d)", "i64(d)", "i64(1)"])
        self.assertEqual(lists[1][0], "map(x, 128, 32, 32)")

    def test_the_first_dims_of_an_example_may_be_joined(self):
        def launch(x):
            out = torch.empty_like(x)
            flat, into = x.view(-1, x.shape[-1]), out.view(-1, x.shape[-1])
            copied_tiles[(triton.cdiv(flat.shape[0], 16),)](*(TensorDescriptor.from_tensor(one, [16, 64]) for one in (flat, into)), ROWS=16, COLUMNS=64)
            return out

        packed = hone.triton.pack(launch, (torch.ones(3, 20, 64),), reference=copied, name="t_joined", folder=self.folder / "joined", arch=90)
        self.assertEqual(packed.signature, "t_joined(x: f32[m, n, k]) -> y: f32[m, n, k]")
        self.assertEqual(self.lists(packed.folder)[0][:3], ["map(x, 128, 16, 32)", "i32(x.size / max(k, 1))", "i32(k)"])
        # Several configs: the block is the parameter of its size.
        packed = hone.triton.pack(launch, (torch.ones(3, 20, 64),), [{"ROWS": 16, "COLUMNS": 64}, {"ROWS": 32, "COLUMNS": 64}], reference=copied,
                                  name="t_joined_twice", folder=self.folder / "twice", arch=[80, 90])
        boxes = [one[0] for one in self.lists(packed.folder)]
        self.assertEqual(set(boxes), {"x", "map(x, 128, 16, 32)", "map(x, 128, 32, 32)"})

    def test_what_hone_cannot_describe_says_so(self):
        def refused(words, make, name, configs=None, rows=16, **options):
            def launch(x):
                out = torch.empty_like(x)
                copied_tiles[(3,)](*make(x, out), ROWS=rows, COLUMNS=64)
                return out

            with self.assertRaisesRegex(hone.InvalidArgumentError, words):
                hone.triton.pack(launch, (torch.ones(48, 64),), configs, reference=copied, name=name, arch=90, **options)

        def of(*tensors, **options):
            return [TensorDescriptor.from_tensor(one, [16, 64], **options) for one in tensors]

        refused("hone makes descriptors of whole row-major tensors", lambda x, out: of(x[:32], out), "t_part")
        refused("hone makes descriptors of whole row-major tensors", lambda x, out: of(x.view(24, 128), out), "t_other_rows")
        refused("pads with nan", lambda x, out: of(x, out, padding="nan"), "t_nan")
        refused("neither in the example nor a result", lambda x, out: of(x.clone(), out), "t_made")
        refused("and ROWS and COLUMNS are 64: say it", lambda x, out: [TensorDescriptor.from_tensor(one, [64, 64]) for one in (x, out)], "t_both",
                [{"ROWS": 64, "COLUMNS": 64}, {"ROWS": 32, "COLUMNS": 64}], rows=64)

        def zero(nargs):
            nargs["o_desc"].base.zero_()

        def pad(nargs):
            nargs["x_desc"].padding = "nan"

        def one(nargs):
            nargs["x_desc"].block_shape = [nargs["ROWS"], nargs["COLUMNS"]]

        two = {"ROWS": 16, "COLUMNS": 64}
        refused("a pre_hook that does more than set the blocks", of, "t_zero", [triton.Config(two, pre_hook=zero)])
        refused("a pre_hook that sets padding of x_desc", of, "t_pad", [triton.Config(two, pre_hook=pad)])
        refused("has no pre_hook, and another has", of, "t_some", [triton.Config(two, pre_hook=one), triton.Config({"ROWS": 32, "COLUMNS": 64})])
        refused("o_desc is tensordesc<fp32>|block '' ", lambda x, out: of(x, out), "t_open", [two], arguments={"o_desc": ("tensordesc<fp32>", "y")})
        refused("block 'TILE': expected a whole number, a parameter of the config", of, "t_unknown", [two],
                arguments={"o_desc": "descriptor(y, TILE, COLUMNS)"})


@triton.jit
def doubled_blocks(x, out, n, BLOCK: tl.constexpr = 256):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def doubled(x):
    return x * 2


class References(HoneTest):
    def test_one_that_tells_no_parameters_says_what_to_write(self):
        def launch(x):
            out = torch.empty_like(x)
            doubled_blocks[(triton.cdiv(x.numel(), 256),)](x, out, x.numel())
            return out

        example = {"x": torch.ones(1000), "out": torch.ones(1000), "n": 1000}
        with self.assertRaisesRegex(hone.InvalidArgumentError, r"the reference is the builtin_function_or_method exp, .* def right\(x\)"):
            hone.triton.pack(doubled_blocks, example, reference=torch.exp, name="t_no_parameters", grid=(4,))
        for reference, words in (("exp", "got 'exp'"), (torch.nn.Linear(4, 4), "takes any arguments: write a function")):
            with self.subTest(reference), self.assertRaisesRegex(hone.InvalidArgumentError, words):
                hone.triton.pack(launch, (torch.ones(1000),), reference=reference, name="t_no_parameters")
        packed = hone.triton.pack(launch, (torch.ones(1000),), reference=torch.nn.functional.silu, name="t_with_a_default", folder=self.folder / "pack")
        self.assertEqual(packed.signature, "t_with_a_default(input: f32[n]) -> y: f32[n]")


    def test_functions_of_c_partials_and_modules_of_torch_take_what_the_launching_function_takes(self):
        def launch(x):
            out = torch.empty_like(x)
            doubled_blocks[(triton.cdiv(x.numel(), 256),)](x, out, x.numel())
            return out

        for index, (reference, right) in enumerate(((torch.exp, torch.exp), (functools.partial(torch.mul, other=2.0), doubled),
                                                    (torch.nn.Softmax(dim=-1), torch.nn.Softmax(dim=-1)), (functools.partial(torch.softmax, dim=-1), torch.nn.Softmax(dim=-1)))):
            with self.subTest(reference):
                name = f"t_told_{index}"
                packed = hone.triton.pack(launch, (torch.ones(1000),), reference=reference, name=name, folder=self.folder / name)
                self.assertEqual(packed.signature, f"{name}(x: f32[n]) -> y: f32[n]")
                x = torch.rand(1000)
                torch.testing.assert_close(hone.run(name, x), right(x))


class Heuristics(HoneTest):
    def test_what_a_heuristic_reads_of_a_call_is_what_its_binary_is_for(self):
        program = self.folder / "program.py"
        program.write_text(WITH_HEURISTICS)
        environment = {**os.environ, "HONE_STORE": "none", "XDG_CACHE_HOME": str(self.folder), "HONE_CUDA_DRIVER": f"{os.environ['HONE_TEST_FAKES']}/fake_cuda.so",
                       "HONE_NVRTC": "/nowhere/libnvrtc.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"), "FAKE_CUDA_OPTIONS": ""}
        expected = [["512", "0"], ["512", "1"], ["1024", "0"]]
        for how in ("compiles", "compiles nothing"):
            done = subprocess.run([sys.executable, "-B", str(program), how], env=environment, capture_output=True, text=True, timeout=300)
            self.assertEqual([line.split()[1:] for line in done.stdout.splitlines()], expected, done.stdout + done.stderr)
            self.assertEqual(len({line.split()[0] for line in done.stdout.splitlines()}), 3)

    def test_one_that_fails_is_told(self):
        function = triton.heuristics({"BLOCK": lambda given: given["nothing"]})(doubled_blocks)
        hone.algorithm("t_heuristic(x: f32[n]) -> out: f32[n]")(doubled)
        hone.kernel("t_heuristic", name="failing", grid="ceildiv(n, BLOCK)")(function)
        made = next(one for one in hone.kernels.declared("t_heuristic"))
        with self.assertRaisesRegex(ValueError, "the heuristic of BLOCK fails: KeyError: 'nothing'"):
            made._configs_for(hone.call("t_heuristic", torch.ones(1000)), {})
        with self.assertRaisesRegex(hone.InvalidArgumentError, "unfit: grid: how many programs are started cannot be told"):
            hone.kernel("matmul", name="unfit")(function)


class Grids(HoneTest):
    def pack(self, size, grid, name):
        example = {"x": torch.ones(size), "out": torch.ones(size), "n": size}
        return hone.triton.pack(doubled_blocks, example, reference=doubled, name=name, grid=grid, arch=90, folder=self.folder / name)

    def test_the_grid_of_an_example_reads_the_defaults_of_the_function(self):
        self.assertEqual(self.pack(1000, (4,), "t_doubled").grid, ["ceildiv(n, BLOCK)"])

    def test_one_program_tells_no_grid(self):
        for grid in ((1,), lambda meta: (triton.cdiv(100, meta["BLOCK"]),)):
            with self.assertRaisesRegex(hone.InvalidArgumentError, "take an example that is larger than BLOCK = 256"):
                self.pack(100, grid, "t_small")

    def test_a_number_that_no_size_gives_is_no_grid(self):
        with self.assertRaisesRegex(hone.InvalidArgumentError, "are no expression of the sizes"):
            self.pack(1000, (17,), "t_number")


class Decorated(HoneTest):
    def setUp(self):
        super().setUp()

        @hone.algorithm("t_rows(x: T[..., d], weight: T[d], *, eps: f64 = 1e-5) -> y: T[..., d] where T in f32, f16, bf16", independent="...")
        def rows(x, weight, eps):
            return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight

    def test_names_of_the_signature_are_all_that_a_decorator_needs(self):
        rows = hone.kernel("t_rows", space="BLOCK: 256..1024 *4; num_warps: 4 | 8", condition="BLOCK >= d")(norm_of_rows)
        self.assertIs(rows, norm_of_rows)
        folder, lost = hone.pack(self.folder / "pack", "t_rows", target=[80, 90])
        kernels = json.loads((folder / "pack.json").read_text())["kernels"]
        made = {row["name"]: row for row in kernels if row["platform"] == "triton"}
        # For three dtypes, sizes that 16 divides and others, two targets.
        self.assertEqual(len(made), 12)
        self.assertEqual({made["norm_of_rows_f32"]["target"], made["norm_of_rows_f32_sm90"]["target"]}, {"sm_80", "sm_90a"})
        row = made["norm_of_rows_bf16"]
        self.assertEqual((row["arguments"][0], row["grid"]), ("x:16", "x.size / max(d, 1)"))
        self.assertEqual({variant["config"]["BLOCK"] for variant in row["variants"]}, {256, 1024})
        self.assertIn("BLOCK >= d", row["variants"][0]["condition"])
        self.assertEqual(len(lost), 1)

    def test_a_call_for_a_gpu_compiles_for_it_and_the_next_process_compiles_nothing(self):
        program = self.folder / "program.py"
        program.write_text(FOR_A_GPU)
        fakes = os.environ["HONE_TEST_FAKES"]
        environment = {**os.environ, "HONE_STORE": self.store, "XDG_CACHE_HOME": str(self.folder), "HONE_CUDA_DRIVER": f"{fakes}/fake_cuda.so",
                       "HONE_NVRTC": "/nowhere/libnvrtc.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"), "FAKE_CUDA_OPTIONS": ""}
        for how, last in (("tune", "tri_f32 memory"), ("run", "tri_f32 store")):
            done = subprocess.run([sys.executable, "-B", str(program), how], env=environment, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.stdout.splitlines()[-1:], [last], done.stdout + done.stderr)
        self.assertIn("launch add grid 4,1,1", (self.folder / "log").read_text())

    def test_the_name_of_a_function_stands_for_the_kernels_that_are_made_of_it(self):
        program = self.folder / "program.py"
        program.write_text(FOR_A_GPU)
        environment = {**os.environ, "HONE_STORE": "none", "XDG_CACHE_HOME": str(self.folder), "HONE_CUDA_DRIVER": f"{os.environ['HONE_TEST_FAKES']}/fake_cuda.so",
                       "HONE_NVRTC": "/nowhere/libnvrtc.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"), "FAKE_CUDA_OPTIONS": ""}
        done = subprocess.run([sys.executable, "-B", str(program), "name"], env=environment, capture_output=True, text=True, timeout=300)
        refused = done.stdout.splitlines()[5:6]
        self.assertEqual(done.stdout.splitlines()[:5], ["['tri', 'reference']", "tri_f32 override", "tri_f16 heuristic", "portable",
                                                        "portable"], done.stdout + done.stderr)
        self.assertIn("tri has no kernel for t_fake(f32[4096], f32[4096])", *refused)
        self.assertEqual(done.stdout.splitlines()[6:], ["tri_f32", "tri_f32 memory"])

    def test_what_was_edited_by_hand_stays(self):
        hone.kernel("t_rows", space="BLOCK: 512", condition="BLOCK >= d")(norm_of_rows)
        folder = self.folder / "pack"
        hone.pack(folder, "t_rows", target=90)
        path = folder / "pack.json"
        document = json.loads(path.read_text())
        triton_rows = [row for row in document["kernels"] if row["platform"] == "triton"]
        triton_rows[0]["priority"] = 99
        triton_rows[0]["description"] = "the one that we like"
        document["description"] = "ours"
        path.write_text(json.dumps(document))
        hone.pack(folder, "t_rows", target=90)
        again = json.loads(path.read_text())
        row = next(row for row in again["kernels"] if row["name"] == triton_rows[0]["name"])
        self.assertEqual((row["priority"], row["description"], again["description"]), (99, "the one that we like", "ours"))
        hone.pack(folder, "t_rows", target=90, overwrite=True)
        row = next(row for row in json.loads(path.read_text())["kernels"] if row["name"] == triton_rows[0]["name"])
        self.assertEqual(row["priority"], 55)

    def test_what_cannot_be_told_is_asked_for(self):
        def refused(words, function=norm_of_rows, **options):
            with self.assertRaises(hone.InvalidArgumentError) as caught:
                hone.kernel("t_rows", name="refused", **{"platform": "triton", **options})(function)
            self.assertIn(words, str(caught.exception))

        refused("BLOCK is a constexpr without a value")
        refused("TILE is no argument of the function", space="TILE: 16; BLOCK: 256")
        refused("what p is cannot be told from the signature", function=dropout_blocks, space="BLOCK: 64",
                arguments={"keep_ptr": "weight", "n_elements": "x.size"})
        refused("is no function of triton.jit", function=whole_add)
        refused("grid is a function, which only Python can call", space="BLOCK: 256", grid=lambda meta: (1,))
        refused("never ends", space="BLOCK: 256..1024 *1")
        refused("has no option 'gird'", space="BLOCK: 256", gird="1")

    def test_without_triton_and_without_its_compiler(self):
        with mock.patch.dict(sys.modules, {"triton": None}), self.assertRaisesRegex(ImportError, "pip install triton"):
            hone.kernel("t_rows", name="no", space="BLOCK: 256", platform="triton")(norm_of_rows)
        hone.kernel("t_rows", name="uncompiled", space="BLOCK: 128", condition="BLOCK >= d")(norm_of_rows)
        with mock.patch.object(triton, "compile", side_effect=RuntimeError("ptxas is not here")):
            with self.assertRaisesRegex(hone.UnsupportedError, r"of t_rows does not compile for sm_89 with \w+: RuntimeError: ptxas is not here"):
                hone.pack(self.folder / "none", "t_rows", target=89)
        self.assertFalse((self.folder / "none" / "pack.json").exists())


# The fake driver computes by the function's name.
WITH_HEURISTICS = """
import sys
import triton
import triton.language as tl
import hone

@hone.kernel("softmax", name="mine")
@triton.heuristics({"BLOCK": lambda a: triton.next_power_of_2(a["n_cols"]), "EVEN": lambda a: a["n_cols"] % a["BLOCK"] == 0})
@triton.jit
def rows(y_ptr, x_ptr, x_row_stride, y_row_stride, n_cols, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row_stride + at, mask=at < n_cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * y_row_stride + at, e / tl.sum(e, 0), mask=at < n_cols)

if sys.argv[1] != "compiles":
    triton.compile = None
for sizes in ("7,300", "7,512", "9,700"):
    with hone.override("softmax", "mine"):
        decision = hone.decide(f"softmax(f32[{sizes}]) @cuda:0")
    print(decision.kernel, decision.config["BLOCK"], decision.config["EVEN"])
"""

FOR_A_GPU = """
import sys
import triton
import triton.language as tl
import hone

@hone.algorithm("t_fake(x: T[n], y: T[n]) -> out: T[n] where T in f32, f16", independent="n")
def t_fake(x, y):
    return x + y

@hone.kernel("t_fake", space="BLOCK: 1024", name="tri")
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

call = "t_fake(f32[4096], f32[4096]) @cuda:0"
if sys.argv[1] == "name":  # the function's, which no kernel has
    print([kernel.name for kernel in hone.registry.kernels("t_fake")])
    with hone.override("t_fake", "tri"):
        print(hone.decide(call).kernel, hone.decide(call).source)
        print(hone.decide("t_fake(f16[4096], f16[4096]) @cuda:0").kernel, hone.decide("softmax(f32[4,8])").source)
        with hone.override("softmax", "portable"):
            print(hone.decide("softmax(f32[4,8])").kernel)
    with hone.override("softmax", "portable"), hone.override("t_fake", "tri"):
        print(hone.decide("softmax(f32[4,8])").kernel)
    with hone.override("t_fake", "tri"):
        try:
            hone.decide("t_fake(f32[4096], f32[4096])")
        except hone.NotFoundError as error:
            print(error)
    print(hone.tune(call, seconds=5, evaluations=3, kernel="tri", progress=False)[0].kernel)
elif sys.argv[1] == "tune":
    hone.tune(call, seconds=5, evaluations=3, progress=False)
else:
    triton.compile = None
decision = hone.decide(call)
print(decision.kernel, decision.source)
"""


@triton.jit
def norm_of_rows(X, Y, W, x_row_stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(X + row * x_row_stride + at, mask=at < n_cols, other=0.0).to(tl.float32)
    factor = tl.rsqrt(tl.sum(value * value, axis=0) / n_cols + eps)
    scale = tl.load(W + at, mask=at < n_cols, other=0.0).to(tl.float32)
    tl.store(Y + row * x_row_stride + at, (value * factor * scale).to(Y.dtype.element_ty), mask=at < n_cols)


if __name__ == "__main__":
    unittest.main()
