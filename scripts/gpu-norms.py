"""Part `norms` of scripts/gpu: kernels of hone's own beside torch, on a real GPU: gpu-norms.py check | times | gradients | products | attention | scaled [-v].

check   rows that are large, tiny, infinite, NaN or masked against the reference on the CPU, at several configs, and tensors of more than
        2^31 elements. Leaves with 1 when something was wrong.
times   contests at the shapes below, then hone, torch and torch.compile in turn, from graphs of 20 calls. HONE_GPU_SECONDS: of a contest
        (5; 0: none, the config that is taken without one).
gradients   the same for the gradients of norms, softmax and silu_mul. Their rival is what torch's autograd runs, and the formula
            compiled by torch.compile
products    matmul at 30 calls: contests, then hone, torch, torch.compile where there is an epilogue, and the first proposal of
            cuBLASLt's heuristic in turn
attention   flash_attention, with the best of a few configs, and torch's scaled_dot_product_attention, as it chooses and with cuDNN.
            -v: what each config takes
scaled      scaled_matmul of 8 bit integers and floats: every kernel against the reference on the CPU, then contests, hone and torch's
            _scaled_mm and _int_mm in turn
"""

import os
import sys
import time

import torch

import hone

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
F = torch.nn.functional
wrong = 0


def fail(what):
    global wrong
    wrong += 1
    print("FAILED", what, flush=True)


# Rows -----------------------------------------------------------------------------------------------------------------


def special_rows(dim, dtype):
    """A row of each kind, by name."""
    most = torch.finfo(dtype).max
    generator = torch.Generator().manual_seed(dim)
    normal = torch.randn(dim, generator=generator, dtype=torch.float64)
    signs = torch.where(normal < 0, -1.0, 1.0)

    def with_one(value):
        row = normal.clone()
        row[dim // 2] = value
        return row

    rows = {"normal": normal, "large": normal * (most / 8), "largest": signs * most, "all largest": torch.full((dim,), most),
            "tiny": normal * 1e-30, "subnormal": normal * 1e-41, "zeros": normal * 0, "masked": torch.full((dim,), -most),
            "one seen": with_one(0.5), "plus infinity": with_one(float("inf")), "minus infinity": with_one(-float("inf")),
            "nan": with_one(float("nan")), "all minus infinity": torch.full((dim,), -float("inf")), "moved": normal + 1000}
    rows["one seen"][1:] = -most
    return list(rows), torch.stack([row.double() for row in rows.values()]).to(dtype)


def compare(what, names, got, wanted):
    got, wanted = got.cpu().double(), wanted.double()
    eps = {torch.float32: 4e-6, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}[DTYPES[what.split()[1]]]
    finite = torch.isfinite(wanted)
    top = torch.where(finite, wanted.abs(), 0).amax(-1, keepdim=True)
    near = (got - wanted).abs() <= eps * wanted.abs() + 2e-5 * top + (6e-8 if eps == 2.0**-10 else 1e-45)
    right = torch.where(finite, near, (got == wanted) | (got.isnan() & wanted.isnan())).all(-1)
    for row in (~right).nonzero().flatten().tolist():
        fail(f"{what}, row {names[row]}: {got[row].flatten()[:4].tolist()} for {wanted[row].flatten()[:4].tolist()}")


def both(what, names, operation, config, *arrays, **scalars):
    """The operation on the GPU, and by the reference."""
    with hone.context(override={operation: ("cuda", config) if config else "cuda"}, policy="heuristic"):
        try:
            got = hone.run(operation, *[array.cuda() for array in arrays], **scalars)
        except hone.HoneError as error:
            return fail(f"{what}: {error}")
    with hone.context(override={operation: "reference"}, policy="heuristic"):
        wanted = hone.run(operation, *arrays, **scalars)
    for a, b in zip(got if isinstance(got, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,)):
        compare(what, names, a, b)


def row_configs(dim):
    """Each way through the kernels: by lanes, a warp, warps, a cluster; held and read again."""
    yield None
    for threads, rows, keep, cluster in [(4, 8, 0, 1), (8, 4, None, 1), (32, 1, None, 1), (64, 4, None, 1), (256, 1, 0, 1), (128, 1, None, 4)]:
        packs = dim // 2
        if keep is None:
            keep = next((k for k in (1, 2, 4, 8, 16) if k * threads * cluster >= packs), None)
            if keep is None or (keep == 1 and threads > 4 and threads * cluster >= 2 * packs):
                continue
        elif threads > 32 and threads >= 2 * packs:
            continue
        yield {"threads_per_row": threads, "rows_per_block": rows, "vector": 2, "keep": keep, "cluster": cluster}


def check_rows():
    for name, dtype in DTYPES.items():
        for dim in (2, 64, 1002, 4096, 40000):
            names, x = special_rows(dim, dtype)
            weight = (torch.randn(dim) + 1).to(dtype)
            for config in row_configs(dim) if name != "f16" else [None]:
                for scale in (1.0, -0.5, 1e-30):
                    both(f"softmax {name} {dim} scale={scale} {config}", names, "softmax", config, x, scale=scale)
                for eps in (1e-6, 0.0):
                    both(f"rms_norm {name} {dim} eps={eps} {config}", names, "rms_norm", config, x, weight, eps=eps)
                    both(f"layer_norm {name} {dim} eps={eps} {config}", names, "layer_norm", config, x, weight.float(), weight, eps=eps)
                both(f"layer_norm {name} {dim} plain {config}", names, "layer_norm", config, x, subtract_mean=False, weight_offset=1.0)
                both(f"add_rms_norm {name} {dim} {config}", names, "add_rms_norm", config, x, (x * 0.25).flip(-1), weight)
            both(f"silu_mul {name} {dim}", names, "silu_mul", None, x, x.flip(-1))
            both(f"silu_mul_vjp {name} {dim}", names, "silu_mul_vjp", None, x, x.flip(-1), x)
            both(f"mean_pooling {name} {dim}", ["all"], "mean_pooling", None, x.t()[None].contiguous())
        names, x = special_rows(128, dtype)
        heads, angles = x[:, None, None, :].expand(-1, 3, 5, -1).contiguous(), torch.rand(3, 48)
        for interleaved in (False, True):
            both(f"rope {name} {interleaved}", names, "rope", None, heads, angles.cos(), angles.sin(), interleaved=interleaved)
    print(f"rows: {wrong} wrong", flush=True)


# More than 2^31 elements ----------------------------------------------------------------------------------------------


def check_large():
    def random(*shape):
        return torch.empty(*shape, dtype=torch.bfloat16, device="cuda").normal_()

    def last(name, operation, slices, *arrays, **scalars):
        with hone.context(override={operation: "cuda"}, policy="heuristic"):
            got = hone.run(operation, *arrays, **scalars)
        with hone.context(override={operation: "reference"}, policy="heuristic"):
            wanted = hone.run(operation, *[part.cpu() for part in slices], **scalars)
        firsts = got if isinstance(got, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,)
        for a, b in zip(*firsts):
            compare(f"{operation} bf16 {name}", ["last"] * b.shape[0], a[-b.shape[0]:], b)
        print(f"large: {operation} {name}", flush=True)

    rows = 2**31 // 4096 + 64
    x, w = random(rows, 4096), random(4096)
    last("large", "softmax", [x[-4:]], x)
    last("large", "rms_norm", [x[-4:], w], x, w)
    last("large", "layer_norm", [x[-4:], w, w], x, w, w)
    last("large", "add_rms_norm", [x[-4:], x[-4:], w], x, x, w)
    last("large", "silu_mul", [x[-4:], x[-4:]], x, x)
    angles = torch.rand(16, 64, device="cuda")
    heads = x[:rows // 16 * 16].view(-1, 16, 32, 128)
    last("large", "rope", [heads[-2:], angles.cos(), angles.sin()], heads, angles.cos(), angles.sin())
    tall = x[: 8193 * 64].view(8193, 64, 4096)
    last("large", "mean_pooling", [tall[-1:]], tall)


# Times ----------------------------------------------------------------------------------------------------------------


def eager_rope(x, cos, sin):
    half = cos.shape[-1]
    a, b = x[..., :half].float(), x[..., half:].float()
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def eager_add(x, residual, weight):
    total = x + residual
    return total, F.rms_norm(total, (x.shape[-1],), weight, 1e-6)


TORCH = {
    "softmax": lambda x: torch.softmax(x, -1),
    "rms_norm": lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-6),
    "add_rms_norm": eager_add,
    "silu_mul": lambda gate, up: F.silu(gate) * up,
    "rope": eager_rope,
    "mean_pooling": lambda x: x.mean(1),
}

SHAPES = [
    ("softmax", "f32", (4096, 4096)), ("softmax", "bf16", (4096, 4096)), ("softmax", "f32", (32, 128256)), ("softmax", "bf16", (131072, 128)),
    ("rms_norm", "bf16", (4096, 4096)), ("rms_norm", "bf16", (32, 128256)), ("rms_norm", "f32", (16384, 1024)),
    ("layer_norm", "bf16", (4096, 4096)), ("layer_norm", "f32", (16384, 1024)), ("layer_norm", "bf16", (32, 8192)),
    ("add_rms_norm", "bf16", (4096, 4096)), ("add_rms_norm", "f32", (4096, 4096)), ("add_rms_norm", "bf16", (32, 8192)),
    ("silu_mul", "bf16", (4096, 14336)), ("silu_mul", "f32", (4096, 4096)), ("silu_mul", "bf16", (32, 14336)),
    ("rope", "bf16", (1, 4096, 32, 128)), ("rope", "bf16", (8, 2048, 8, 128)), ("rope", "bf16", (64, 1, 32, 128)),
    ("mean_pooling", "bf16", (8, 4096, 4096)), ("mean_pooling", "bf16", (64, 512, 1024)),
]




# The backward pass as autograd runs it, from saved statistics; and the formula, for torch.compile.
aten = torch.ops.aten


def softmax_vjp(y, d_y):
    return aten._softmax_backward_data(d_y, y, -1, y.dtype)


def layer_norm_vjp(x, d_y, weight):
    """d_weight and d_bias in float, as hone gives them: the conversion is left out."""
    wide = x.float()
    middle, factor = wide.mean(-1, keepdim=True), torch.rsqrt(wide.var(-1, keepdim=True, correction=0) + 1e-6)
    return lambda: aten.native_layer_norm_backward(d_y, x, [x.shape[-1]], middle, factor, weight, weight, [True, True, True])


def rms_norm_vjp(x, weight, d_y):
    factor = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
    return lambda: aten._fused_rms_norm_backward(d_y, x, [x.shape[-1]], factor, weight, [True, True])


def formula_of_softmax(y, d_y):
    wide, slope = y.float(), d_y.float()
    return (wide * (slope - (wide * slope).sum(-1, keepdim=True))).to(y.dtype)


def formula_of_rms_norm(x, weight, d_y):
    wide, slope = x.float(), d_y.float()
    factor = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    h, g = wide * factor, slope * weight.float()
    return (factor * (g - h * (g * h).mean(-1, keepdim=True))).to(x.dtype), (slope * h).sum(0).to(weight.dtype)


def formula_of_add_rms_norm(total, weight, d_sum, d_y):
    d_x, d_weight = formula_of_rms_norm(total, weight, d_y)
    return d_x + d_sum, d_weight


def formula_of_layer_norm(x, d_y, weight):
    wide, slope = x.float(), d_y.float()
    away = wide - wide.mean(-1, keepdim=True)
    factor = torch.rsqrt(away.square().mean(-1, keepdim=True) + 1e-6)
    h, g = away * factor, slope * weight.float()
    d_x = factor * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
    return d_x.to(x.dtype), (slope * h).sum(0), slope.sum(0)


def formula_of_silu_mul(gate, up, d_y):
    wide, slope = gate.float(), d_y.float()
    s = torch.sigmoid(wide)
    return (s * (1 + wide * (1 - s)) * up.float() * slope).to(gate.dtype), (s * wide * slope).to(gate.dtype)


FORMULAS = {"softmax_vjp": formula_of_softmax, "rms_norm_vjp": formula_of_rms_norm, "add_rms_norm_vjp": formula_of_add_rms_norm,
            "layer_norm_vjp": formula_of_layer_norm, "silu_mul_vjp": formula_of_silu_mul}
AUTOGRAD = {"softmax_vjp": lambda *args: lambda: softmax_vjp(*args), "rms_norm_vjp": rms_norm_vjp, "layer_norm_vjp": layer_norm_vjp}

GRADIENTS = [
    ("softmax_vjp", "bf16", (4096, 4096)), ("softmax_vjp", "f32", (4096, 1024)), ("softmax_vjp", "bf16", (131072, 128)),
    ("softmax_vjp", "bf16", (32, 128256)), ("rms_norm_vjp", "bf16", (4096, 4096)), ("rms_norm_vjp", "f32", (16384, 1024)),
    ("rms_norm_vjp", "bf16", (512, 8192)), ("rms_norm_vjp", "bf16", (131072, 128)), ("add_rms_norm_vjp", "bf16", (4096, 4096)),
    ("add_rms_norm_vjp", "bf16", (2048, 8192)), ("layer_norm_vjp", "bf16", (4096, 4096)), ("layer_norm_vjp", "f32", (16384, 1024)),
    ("layer_norm_vjp", "bf16", (8192, 768)), ("silu_mul_vjp", "bf16", (4096, 14336)),
]


def gradient_arguments(operation, dtype, shape):
    def random(*shape):
        return torch.randn(*shape, device="cuda").to(DTYPES[dtype])

    x, d_y, weight = random(*shape), random(*shape), random(shape[-1])
    return {"softmax_vjp": lambda: [torch.softmax(x, -1), d_y], "rms_norm_vjp": lambda: [x, weight, d_y],
            "add_rms_norm_vjp": lambda: [x, weight, random(*shape), d_y], "layer_norm_vjp": lambda: [x, d_y, weight],
            "silu_mul_vjp": lambda: [x, random(*shape), d_y]}[operation]()


def arguments(operation, dtype, shape):
    def random(*shape, dtype=DTYPES[dtype]):
        return torch.randn(*shape, device="cuda").to(dtype)

    x, dim = random(*shape), shape[-1]
    more = {"rms_norm": 1, "layer_norm": 2}.get(operation, 0)
    if operation == "add_rms_norm":
        return [x, random(*shape), random(dim)]
    if operation == "silu_mul":
        return [x, random(*shape)]
    if operation == "rope":
        angles = random(shape[1], dim // 2, dtype=torch.float32)
        return [x, angles.cos(), angles.sin()]
    return [x] + [random(dim) for _ in range(more)]


def graph_of(body):
    body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            body()
    return graph


def once(graph):
    time.sleep(0.005)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 20 * 1e3


def median(values):
    return sorted(values)[len(values) // 2]


def measure_shape(operation, dtype, shape, seconds):
    is_gradient = operation in FORMULAS
    args = (gradient_arguments if is_gradient else arguments)(operation, dtype, shape)
    formula = (FORMULAS if is_gradient else TORCH)[operation]
    eager = AUTOGRAD[operation](*args) if operation in AUTOGRAD else lambda: formula(*args)
    call = f"{operation}({dtype}[{','.join(map(str, shape))}])"
    wanted = formula(*args)
    results = [torch.empty_like(one) for one in (wanted if isinstance(wanted, tuple) else (wanted,))]
    if seconds > 0:
        decision, = hone.tune(operation, *args, seconds=seconds, evaluations=80)
        chosen = f"{decision.kernel} {decision.config}"
    else:
        chosen = "not tuned"
    with hone.context(policy="heuristic"):
        plan = hone.bind(operation, *args, *results)
        compiled = torch.compile(formula)
        rivals = {"hone": lambda: plan(*args, *results), "torch": eager, "compile": lambda: compiled(*args)}
        graphs = {name: graph_of(body) for name, body in rivals.items()}
    times = {name: [] for name in graphs}
    for _ in range(15):
        for name, graph in graphs.items():
            times[name].append(once(graph))
    pairs = list(zip(results, wanted if isinstance(wanted, tuple) else (wanted,)))
    gone = max(float((a.float() - b.float()).abs().max()) for a, b in pairs)
    off = max(float(torch.linalg.norm(a.float() - b.float()) / torch.linalg.norm(b.float())) for a, b in pairs)
    if not off < 2e-2:
        fail(f"{call}: off by {off:.1e}")
    ratios = sorted(a / min(b, c) for a, b, c in zip(times["hone"], times["torch"], times["compile"]))
    moved = sum(one.numel() * one.element_size() for one in args + results)
    ours = median(times["hone"])
    print(f"| `{call}` | {median(times['torch']):.2f} | {median(times['compile']):.2f} | {ours:.2f} | {moved / ours / 1e6:.2f} | "
          f"{ours / median(times['compile']):.2f} | {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) | {gone:.1e} {chosen} |", flush=True)
    return ours / median(times["compile"])


def show_times(shapes):
    seconds = float(os.environ.get("HONE_GPU_SECONDS", "5"))
    print("torch", torch.__version__, torch.cuda.get_device_name())
    print("| call | torch, us | compiled, us | hone, us | TB/s | over compiled | over the better, in turn | largest difference, config |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    product, count = 1.0, 0
    for operation, dtype, shape in shapes:
        try:
            product *= measure_shape(operation, dtype, shape, seconds)
            count += 1
        except Exception as error:
            fail(f"{operation} {dtype} {shape}: {type(error).__name__}: {str(error)[:300]}")
        torch._dynamo.reset()
    if count > 0:
        print(f"geomean over compiled, {count} shapes: {product ** (1 / count):.3f}")


# Products -------------------------------------------------------------------------------------------------------------

# m, n, k and options: rows from 1 to 128, prefill, thin, odd, short k, transposed, with an epilogue.
PRODUCTS = [(m, 4096, 4096, {}) for m in (1, 2, 4, 8, 16, 32, 64, 128, 512, 2048, 4096, 8192)] + [
    (1, 14336, 4096, {}), (8, 4096, 14336, {}), (32, 11008, 4096, {}), (2048, 14336, 4096, {}), (4096, 4096, 14336, {}),
    (4096, 64, 4096, {}), (8192, 16, 1024, {}), (65536, 64, 64, {}), (1000, 1000, 1000, {}), (4096, 4096, 128, {}), (1024, 1024, 128, {}),
    (16, 4096, 4096, {"transpose_b": True}), (512, 4096, 4096, {"transpose_b": True}), (4096, 4096, 4096, {"transpose_b": True}),
    (1, 4096, 4096, {"bias": True}), (64, 11008, 4096, {"bias": True, "activation": "gelu_tanh"}),
    (2048, 4096, 4096, {"bias": True, "activation": "gelu_tanh"}), (4096, 4096, 1024, {"bias": True, "activation": "gelu_tanh"})]


def torch_product(a, b, bias, transpose_b, activation):
    b = b.t() if transpose_b else b
    c = a @ b if bias is None else torch.addmm(bias, a, b)
    return c if activation is None else F.gelu(c, approximate="tanh")


def measure_product(m, n, k, given, seconds):
    transpose_b, activation = given.get("transpose_b", False), given.get("activation")
    a = torch.randn(m, k, device="cuda").bfloat16()
    b = torch.randn(*((n, k) if transpose_b else (k, n)), device="cuda").bfloat16()
    bias = torch.randn(n, device="cuda").bfloat16() if given.get("bias") else None
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    scalars = {"transpose_b": transpose_b, **({"bias": bias} if bias is not None else {}), **({"activation": activation} if activation else {})}
    decision, = hone.tune("matmul", a, b, seconds=seconds, **scalars)

    def with_plan(kernel):
        with hone.context(override={"matmul": kernel} if kernel else {}, policy="heuristic"):
            plan = hone.bind("matmul", a, b, c=out, **scalars)
        tensors = [a, b, out] if bias is None else [a, b, out, bias]
        return lambda: plan(*tensors)

    def theirs():
        return torch_product(a, b, bias, transpose_b, activation)

    bodies = {"hone": with_plan(None), "torch": theirs}
    if activation:
        bodies["compile"] = torch.compile(theirs)
    try:
        bodies["cublaslt"] = with_plan("cublaslt")
    except hone.HoneError as error:
        print(f"cublaslt does not take {m} x {n} x {k} {given}: {error}", flush=True)
    wanted = theirs()
    graphs = {name: graph_of(body) for name, body in bodies.items()}
    bodies["hone"]()
    off = float(torch.linalg.norm(out.float() - wanted.float()) / torch.linalg.norm(wanted.float()))
    if not off < 1e-2:
        fail(f"matmul {m} x {n} x {k} {given}: off by {off:.1e}")
    times = {name: [] for name in graphs}
    for _ in range(15):
        for name, graph in graphs.items():
            times[name].append(once(graph))
    us = {name: median(values) for name, values in times.items()}
    best = min((name for name in us if name != "hone"), key=us.get)
    ratios = sorted(ours / other for ours, other in zip(times["hone"], times[best]))
    theirs_us = " | ".join(f"{us[name]:.2f}" if name in us else "" for name in ("torch", "compile", "cublaslt"))
    print(f"| `[{m},{k}] x [{k},{n}]`{''.join(f', {name}' for name in given)} | {us['hone']:.2f} | {2e-6 * m * n * k / us['hone']:.0f} | {theirs_us} | "
          f"{median(ratios):.3f} ({ratios[2]:.3f} to {ratios[-3]:.3f}) | {decision.kernel} {decision.config} |", flush=True)
    return median(ratios)


def show_products():
    seconds, product, count = float(os.environ.get("HONE_GPU_SECONDS", "5")), 1.0, 0
    print("torch", torch.__version__, torch.cuda.get_device_name())
    print("| product | hone, us | TFLOP/s | torch, us | compiled, us | cuBLASLt's first proposal, us | hone over the best, in turn | choice |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for m, n, k, given in PRODUCTS:
        try:
            product *= measure_product(m, n, k, given, seconds)
            count += 1
        except Exception as error:
            fail(f"matmul {m} x {n} x {k} {given}: {type(error).__name__}: {str(error)[:300]}")
        torch._dynamo.reset()
    if count > 0:
        print(f"geomean over the best, {count} products: {product ** (1 / count):.3f}")


# Products of 8-bit elements -------------------------------------------------------------------------------------------

BYTES = {"i8": torch.int8, "f8_e4m3fn": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2}


def scaled_arguments(name, result, m, n, k, transpose_b=True, device="cuda"):
    def matrix(*shape):
        if name == "i8":
            return torch.randint(-128, 128, shape, dtype=torch.int8, device=device)
        return torch.randn(*shape, device=device).to(BYTES[name])

    scale = 0.01 if name == "i8" else 1.0
    return [matrix(m, k), matrix(n, k) if transpose_b else matrix(k, n), torch.rand(m, device=device) * scale + 0.01,
            torch.rand(n, device=device) * scale + 0.01, torch.randn(n, device=device).to(DTYPES[result])]


def compare_scaled(what, got, wanted, scales, result):
    """Within roundings of the result, and of a row's scale times its largest element: of sums in float 2^-12."""
    got, wanted = got.cpu().double(), wanted.double()
    eps = {"f32": 2.0**-20, "f16": 2.0**-10, "bf16": 2.0**-7}[result]
    finite = torch.isfinite(wanted)
    top = torch.where(finite, wanted.abs(), 0).amax(-1, keepdim=True)
    near = (got - wanted).abs() <= eps * wanted.abs() + (2.0**-16 if result == "f32" else 2.0**-11) * top
    right = torch.where(finite, near, (got == wanted) | (got.isnan() & wanted.isnan()))
    if not bool(right.all()):
        row, column = (~right).nonzero()[0].tolist()
        fail(f"{what}: {int((~right).sum())} elements, the first [{row}, {column}]: {got[row, column]} for {wanted[row, column]}")


def check_scaled():
    kernels = {"i8": ["cuda_wgmma", "cuda_tensor_core", "cuda_simt"], "f8_e5m2": ["cuda_wgmma_f8", "cuda_tensor_core_f8", "cuda_simt"],
               "f8_e4m3fn": ["cuda_wgmma_f8", "cuda_tensor_core_f8", "cuda_simt", "cublaslt", "cublaslt, one scale"]}
    count = 0
    for name in BYTES:
        for m, n, k, transpose_b in [(1, 8, 16, True), (5, 33, 48, True), (5, 48, 208, True), (130, 257, 208, True), (130, 272, 208, True), (256, 512, 4096, True), (16, 4096, 4096, True),
                                     (3, 5, 7, True), (70, 33, 65, False), (129, 64, 256, False), (4, 6, 0, True)]:
            for result in DTYPES:
                args = scaled_arguments(name, result, m, n, k, transpose_b, "cpu")
                if name != "i8" and m > 4 and k > 16:
                    args[0].view(torch.uint8)[2, 3] = 0x7F  # NaN
                    args[0].view(torch.uint8)[3, 5] = 0x7C  # 384, or infinity
                for kernel in kernels[name]:
                    if kernel != "cuda_simt" and (not transpose_b or k % 16 or k == 0 or (kernel == "cuda_wgmma_f8" and result != "bf16")):
                        continue
                    kernel, _, has_one = kernel.partition(", ")
                    if kernel == "cublaslt" and (n % 16 or result != "bf16"):
                        continue
                    if has_one:
                        args[2], args[3] = args[2][:1].expand(m), args[3][:1].expand(n)
                    what = f"scaled_matmul {name} {result} [{m}, {n}, {k}] {transpose_b} {kernel}{' of one scale' * bool(has_one)}"
                    with hone.context(override={"scaled_matmul": "reference"}, policy="heuristic"):
                        wanted = hone.run("scaled_matmul", *args, transpose_b=transpose_b)
                    with hone.context(override={"scaled_matmul": kernel}, policy="heuristic"):
                        try:
                            there = [array[:1].cuda().expand(len(array)) if array.stride(0) == 0 else array.cuda() for array in args]
                            got = hone.run("scaled_matmul", *there, transpose_b=transpose_b)
                        except hone.HoneError as error:
                            fail(f"{what}: {error}")
                            continue
                    compare_scaled(what, got, wanted, args[2], result)
                    count += 1
    print(f"scaled: {count} compared, {wrong} wrong", flush=True)


SCALED = [(1, 4096, 4096), (16, 4096, 4096), (64, 8192, 4096), (512, 4096, 4096), (1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192)]


def torch_scaled(name, args):
    a, b, a_scale, b_scale, bias = args
    if name == "i8":  # at least 17 rows; scales follow
        return lambda: (torch._int_mm(a, b.t()).float() * a_scale[:, None] * b_scale + bias.float()).to(bias.dtype)
    rows, columns = a_scale[:, None].contiguous(), b_scale[None].contiguous()
    return lambda: torch._scaled_mm(a, b.t(), scale_a=rows, scale_b=columns, bias=bias, out_dtype=torch.bfloat16)


def measure_scaled(name, m, n, k, seconds):
    args = scaled_arguments(name, "bf16", m, n, k)
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    decision, = hone.tune("scaled_matmul", *args, transpose_b=True, seconds=seconds, evaluations=60)
    with hone.context(policy="heuristic"):
        plan = hone.bind("scaled_matmul", *args, out, transpose_b=True)
    bodies = {"hone": lambda: plan(*args, out)}
    try:
        rival = torch_scaled(name, args)
        wanted = rival()
        bodies["torch"] = rival
        if name == "i8":
            bodies["compiled"] = torch.compile(rival)
            bodies["sums"] = lambda: torch._int_mm(args[0], args[1].t())
    except Exception as error:
        print(f"torch has no {name} of {m} x {n} x {k}: {str(error)[:120]}", flush=True)
        bodies.pop("torch", None)
    graphs = {what: graph_of(body) for what, body in bodies.items()}
    times = {what: [] for what in graphs}
    for _ in range(15):
        for what, graph in graphs.items():
            times[what].append(once(graph))
    if "torch" in bodies:
        compare_scaled(f"{name} {m} {n} {k} beside torch", out, wanted.cpu(), args[2], "bf16")
    rival = [min(each) for each in zip(*[times[what] for what in ("torch", "compiled") if what in times])] or [float("nan")]
    ratios = sorted(a / b for a, b in zip(times["hone"], rival))
    ours = median(times["hone"])
    print(f"| `{name}[{m},{k}]` x `[{n},{k}]` | {ours:.2f} | {2 * m * n * k / ours / 1e6:.0f} | {median(rival):.2f} | "
          f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) | {median(times.get('sums', [float('nan')])):.2f} | {decision.kernel} {decision.config} |", flush=True)


def show_scaled():
    seconds = float(os.environ.get("HONE_GPU_SECONDS", "5"))
    check_scaled()
    print("torch", torch.__version__, torch.cuda.get_device_name())
    print("| operands | hone, us | TFLOP/s | the better of torch and torch.compile, us | hone over it, in turn | _int_mm alone, us | choice |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in ("f8_e4m3fn", "i8"):
        for m, n, k in SCALED:
            try:
                measure_scaled(name, m, n, k, seconds)
            except Exception as error:
                fail(f"{name} {m} {n} {k}: {type(error).__name__}: {str(error)[:300]}")
            torch._dynamo.reset()


# Attention ------------------------------------------------------------------------------------------------------------

# batch, q_len, kv_len, heads, kv_heads, dim, causal
ATTENTION = [
    (1, 1024, 1024, 32, 32, 128, True), (4, 2048, 2048, 16, 16, 64, True), (2, 4096, 4096, 32, 8, 128, True),
    (2, 4096, 4096, 16, 16, 64, False), (2, 1024, 1024, 32, 32, 64, True), (1, 4096, 4096, 16, 16, 256, True), (1, 8192, 8192, 16, 16, 128, False), (1, 16384, 16384, 16, 16, 128, True),
    (1, 1, 4096, 32, 8, 128, False), (1, 1, 65536, 32, 8, 128, False), (16, 1, 8192, 32, 8, 128, False),
    (32, 1, 4096, 64, 8, 128, False), (128, 1, 4096, 32, 8, 128, False), (8, 1, 16384, 32, 8, 64, False),
]


# The parameters of each kernel, and the configs to try.
PARAMETERS = {"cuda_tensor_core": ("warps_m", "warps_n", "keys_per_warp", "stages", "splits"),
              "cuda_wgmma": ("groups", "keys", "stages", "turns", "spread", "copiers", "splits", "ahead")}
PREFILL = [("cuda_wgmma", (*numbers, 1, 0)) for numbers in
           [(2, 128, 4, 1, 16, 2), (2, 128, 4, 1, 1, 2), (2, 128, 4, 0, 4, 2), (2, 176, 4, 1, 1, 2), (2, 176, 4, 1, 1, 4), (3, 80, 6, 1, 4, 2),
            (3, 80, 4, 0, 1, 4), (3, 128, 6, 1, 16, 2), (2, 80, 4, 1, 8, 2),
            (2, 128, 4, 1, 16, 0), (2, 128, 4, 1, 1, 0), (2, 176, 4, 1, 1, 0), (2, 176, 4, 1, 16, 0), (3, 128, 6, 1, 16, 0), (3, 128, 4, 1, 4, 0), (3, 80, 6, 1, 4, 0),
            (2, 80, 4, 1, 8, 0), (2, 128, 6, 1, 4, 0), (3, 96, 4, 1, 1, 0)]]
PREFILL += [("cuda_tensor_core", numbers) for numbers in [(8, 1, 64, 2, 1), (4, 1, 64, 3, 1)]]
DECODE = [("cuda_tensor_core", numbers) for numbers in [
    (1, 4, 16, 4, 8), (1, 8, 16, 3, 4), (1, 8, 16, 4, 8), (1, 4, 32, 2, 4), (1, 4, 16, 4, 2), (1, 4, 16, 4, 1), (1, 2, 32, 4, 4)]]
DECODE += [("cuda_wgmma", (1, *numbers)) for numbers in [
    (128, 4, 0, 1, 0, 1, 0), (128, 6, 0, 1, 0, 1, 0), (128, 6, 0, 1, 0, 4, 0), (128, 6, 0, 1, 0, 8, 0), (64, 12, 0, 1, 0, 8, 0), (64, 12, 0, 1, 0, 1, 0),
    (128, 4, 0, 1, 1, 1, 0), (128, 6, 0, 1, 2, 1, 1), (128, 6, 0, 1, 2, 2, 1), (128, 6, 0, 1, 2, 4, 1), (128, 6, 0, 1, 2, 8, 1), (128, 4, 0, 1, 2, 8, 1)]]


def check_attention():
    for name in ("bf16", "f16"):
        for batch, q_len, kv_len, heads, kv_heads, dim in [
                (1, 5, 7, 2, 1, 16), (2, 130, 130, 4, 2, 64), (1, 1, 1000, 8, 1, 128), (1, 70, 33, 6, 2, 80), (1, 300, 700, 6, 2, 128),
                (1, 700, 300, 2, 2, 64), (1, 200, 200, 2, 1, 256), (2, 140, 150, 48, 48, 64), (3, 1, 2500, 32, 8, 128),
                (2, 1, 600, 6, 2, 64), (1, 9, 1100, 12, 2, 256), (1, 17, 900, 8, 2, 128)]:
            query = torch.randn(batch, q_len, heads, dim).to(DTYPES[name])
            key, value = (torch.randn(batch, kv_len, kv_heads, dim).to(DTYPES[name]) for _ in range(2))
            far, broken = key.clone(), key.clone()
            far[:, : kv_len // 2] *= 300
            broken[:, kv_len - 1] = float("nan")
            for what, k in (("normal", key), ("far", far), ("nan", broken)):
                for causal in (False, True):
                    for scale in (dim**-0.5, 0.0, -3.0):
                        text = f"flash_attention {name} {q_len} {kv_len} {dim} {what} {causal} {scale}"
                        attention_both(text, query, k, value, causal=causal, softmax_scale=scale)
            if "-v" in sys.argv:
                print(name, batch, q_len, kv_len, heads, kv_heads, dim, f"{wrong} wrong", flush=True)
    print(f"attention: {wrong} wrong", flush=True)


def attention_both(what, *arrays, **scalars):
    operation, dim = "flash_attention", arrays[0].shape[-1]
    with hone.context(override={operation: "reference"}, policy="heuristic"):
        wanted = hone.run(operation, *arrays, **scalars).double()
    eps = 2.0**-7 if "bf16" in what else 2.0**-10
    kernels = ["cuda_tensor_core"] if dim <= 128 else []
    if dim in (64, 128, 256):
        rows = arrays[0].shape[1] * arrays[0].shape[2] // arrays[1].shape[2]
        configs = [(1, 64, 4, 0, 4, 1, 1, 0), (1, 64, 6, 0, 4, 2, 1, 1), (1, 80, 3, 0, 4, 0, 1, 0)]
        configs += [(1, 64, 4, 0, 4, 0, splits, 0) for splits in (2, 8) if splits * 32 <= arrays[1].shape[1]]
        configs += [(2, 80, 3, 1, 1, 0, 1, 0)] * (rows > 64) + [(3, 80, 6, 1, 8, 0, 1, 0)] * (rows > 128 and dim <= 128)
        configs += [(1, 64, 4, 0, 4, 2, splits, 1) for splits in (2, 8, 12) if splits * 32 <= arrays[1].shape[1]]
        configs += [(2, 80, 4, 1, 1, 2, 1, 0), (2, 64, 3, 0, 32, 4, 1, 0)] * (rows > 64)
        configs += [(3, 80, 6, 1, 8, 2, 1, 1), (2, 176, 4, 1, 2, 1, 1, 0)] * (rows > 128 and dim <= 128)
        kernels += [("cuda_wgmma", dict(zip(PARAMETERS["cuda_wgmma"], numbers))) for numbers in configs]
    for kernel in kernels:
        with hone.context(override={operation: kernel}, policy="heuristic"):
            got = hone.run(operation, *[array.cuda() for array in arrays], **scalars).cpu().double()
        compare_attention(f"{what} {kernel}", arrays, got, wanted, eps)


def compare_attention(what, arrays, got, wanted, eps):
    finite = torch.isfinite(wanted)
    top = float(arrays[2].double().abs().max())
    far = torch.where(finite & torch.isfinite(got), (got - wanted).abs(), 0).max()
    if bool((finite != torch.isfinite(got)).any()) or float(far) > eps * top:
        fail(f"{what}: {float(far):.2e} of {top:.2e}, {int((finite != torch.isfinite(got)).sum())} not finite alike")


def measure_attention(batch, q_len, kv_len, heads, kv_heads, dim, causal, seconds):
    query, key, value = (torch.randn(batch, n, h, dim, device="cuda").bfloat16() for n, h in ((q_len, heads), (kv_len, kv_heads), (kv_len, kv_heads)))
    out = torch.empty_like(query)
    views = [one.transpose(1, 2) for one in (query, key, value)]

    def theirs():
        return F.scaled_dot_product_attention(*views, is_causal=causal, enable_gqa=heads != kv_heads)

    def graph_with(kernel):
        with hone.context(override={"flash_attention": kernel} if kernel else {}, policy="heuristic"):
            plan = hone.bind("flash_attention", query, key, value, out, causal=causal)
        return graph_of(lambda: plan(query, key, value, out))

    graphs, chosen, least = {"hone": graph_with(None), "torch": graph_of(theirs)}, "without measuring", 0
    if seconds > 0:  # the reference of a contest would take minutes
        least = median([once(graphs["hone"]) for _ in range(5)])
        for kernel, numbers in PREFILL if q_len > 1 else DECODE:
            try:
                graph = graph_with((kernel, dict(zip(PARAMETERS[kernel], numbers))))
            except hone.HoneError:
                continue
            us = median([once(graph) for _ in range(5)])
            if "-v" in sys.argv:
                print(kernel, numbers, f"{us:.1f} us", flush=True)
            if us < least:
                graphs["hone"], chosen, least = graph, f"{kernel} {numbers}", us
    try:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            graphs["cudnn"] = graph_of(theirs)
    except RuntimeError:
        pass
    times = {name: [] for name in graphs}
    for _ in range(11):
        for name, graph in graphs.items():
            times[name].append(once(graph))
    us = {name: median(values) for name, values in times.items()}
    gone = float((out.transpose(1, 2).float() - theirs().float()).abs().max())
    operations = 4 * batch * heads * q_len * kv_len * dim * (0.5 if causal else 1)
    moved = sum(one.numel() for one in (query, key, value, out)) * 2
    best = min(us[name] for name in us if name != "hone")
    print(f"| `bf16[{batch},{q_len},{heads},{dim}]`, {kv_len} keys of {kv_heads} heads{', causal' if causal else ''} | {us['torch']:.1f} | "
          f"{us.get('cudnn', 0):.1f} | {us['hone']:.1f} | {operations / us['hone'] / 1e6:.0f} | {moved / us['hone'] / 1e6:.2f} | {us['hone'] / best:.2f} | "
          f"{gone:.1e} {chosen} |", flush=True)
    return us["hone"] / best


def show_attention():
    seconds = float(os.environ.get("HONE_GPU_SECONDS", "5"))
    print("| query | torch, us | cuDNN, us | hone, us | TFLOP/s | TB/s | over the best | largest difference, config |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for shape in ATTENTION:
        try:
            measure_attention(*shape, seconds)
        except Exception as error:
            fail(f"flash_attention {shape}: {type(error).__name__}: {str(error)[:300]}")


if __name__ == "__main__":
    start = time.perf_counter()
    for part in [one for one in sys.argv[1:] if one != "-v"] or ["check", "times"]:
        if part == "check":
            check_rows()
            print(f"{time.perf_counter() - start:.1f} s", flush=True)
            check_large()
        elif part == "attention-check":
            check_attention()
        elif part == "attention":
            show_attention()
        elif part == "scaled":
            show_scaled()
        elif part == "products":
            show_products()
        else:
            show_times(GRADIENTS if part == "gradients" else SHAPES)
        print(f"{time.perf_counter() - start:.1f} s", flush=True)
    sys.exit(1 if wrong else 0)
