"""Part `streams` of scripts/gpu: calls of hone from Python in the order of their framework's stream, on a real GPU.

Each check counts rounds that came out wrong. Leaves with 1 when a check had one, or a control had none.
"""

import gc
import os
import sys
import threading
import time

import numpy

import hone

ROUNDS = int(os.environ.get("HONE_GPU_ROUNDS", "1000"))
ROWS, DIM, KINDS = 512, 1024, 8
generator = numpy.random.default_rng(1)
DATA = generator.standard_normal((KINDS, ROWS, DIM)).astype(numpy.float32) * numpy.arange(1, KINDS + 1, dtype=numpy.float32)[:, None, None]
DATA += numpy.arange(KINDS, dtype=numpy.float32)[:, None, None]
WEIGHT = numpy.ones(DIM, numpy.float32)
WANTED = DATA / numpy.sqrt((DATA.astype(numpy.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
failed = []


def check(name, body, control=False, rounds=ROUNDS):
    """body(i) is whether round i came out right."""
    start = time.perf_counter()
    try:
        wrong = sum(not body(i) for i in range(rounds))
        words = f"{rounds} rounds, {wrong} wrong" + (", as it must" if control and wrong else "")
        bad = (wrong == 0) if control else (wrong > 0)
    except Exception as error:
        words, bad = f"{type(error).__name__}: {error}", True
    print(f"{'FAILED ' if bad else ''}{name}: {words} ({time.perf_counter() - start:.1f} s)", flush=True)
    if bad:
        failed.append(name)


def refused(name, kind, words, body):
    try:
        body()
        said = "not refused"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, kind) and words in said:
            print(f"{name}: refused: {said}", flush=True)
            return
    print(f"FAILED {name}: {said}", flush=True)
    failed.append(name)


def torch_checks():
    import torch

    print("torch", torch.__version__, torch.cuda.get_device_name())
    data = torch.from_numpy(DATA).cuda()
    wanted = torch.from_numpy(WANTED).cuda().float()
    w = torch.from_numpy(WEIGHT).cuda()
    big = torch.randn(4096, 4096, device="cuda").bfloat16()
    side = torch.cuda.Stream()
    x, given = torch.empty(ROWS, DIM, device="cuda"), torch.empty(ROWS, DIM, device="cuda")
    torch.cuda.synchronize()

    def late(x, i):
        x.fill_(float("nan"))
        torch.mm(torch.mm(big, big), big)
        x.copy_(data[i % KINDS])

    def right(y, i):
        return bool(torch.allclose(y, wanted[i % KINDS], rtol=1e-3, atol=1e-4))

    def on_side(call):
        def body(i):
            with torch.cuda.stream(side):
                given.fill_(float("nan"))
                late(x, i)
                y = call(i).clone()
                return right(y, i)  # waits for this stream alone
        return body

    def plain(i):
        return hone.run("rms_norm", x, w, given) if i % 2 else hone.run("rms_norm", x, w)

    plain(0), plain(1)
    plan, made = hone.bind("rms_norm", x, w, given), hone.bind("rms_norm", x, w)
    torch.cuda.synchronize()
    check("torch, a side stream, hone.run", on_side(plain))
    check("torch, a side stream, a plan", on_side(lambda i: plan(x, w, given) if i % 2 else made(x, w)))
    check("torch, the default stream", lambda i: (late(x, i), right(plain(i).clone(), i))[1])
    try:
        check("torch, control: the default stream in place of the side stream",
              on_side(lambda i: hone.run("rms_norm", x, w, given, stream=0)), control=True, rounds=min(ROUNDS, 100))
    finally:
        torch.cuda.synchronize()

    def named(i):
        with torch.cuda.stream(side):
            given.fill_(float("nan"))
            late(x, i)
        stream = side if i % 2 else side.cuda_stream
        y = (hone.run("rms_norm", x, w, stream=stream) if i % 4 < 2 else plan(x, w, given, stream=stream))
        with torch.cuda.stream(side):
            return right(y.clone(), i)

    check("torch, stream= from outside", named)

    wrong = []

    def thread():
        own, mine = torch.cuda.Stream(), torch.empty(ROWS, DIM, device="cuda")
        torch.cuda.synchronize()
        for i in range(ROUNDS // 4):
            with torch.cuda.stream(own):
                late(mine, i)
                if not right(hone.run("rms_norm", mine, w).clone(), i):
                    wrong.append(i)

    def threads(_):
        all_of_them = [threading.Thread(target=thread) for _ in range(4)]
        for one in all_of_them:
            one.start()
        for one in all_of_them:
            one.join()
        return not wrong

    check(f"torch, 4 threads, a stream each, {ROUNDS // 4} rounds each", threads, rounds=1)
    graphs(torch, data, wanted, w, right)


def graphs(torch, data, wanted, w, right):
    x, given = torch.empty_like(data[0]), torch.empty_like(data[0])
    a = torch.randn(256, 512, device="cuda").bfloat16()
    b = torch.randn(512, 384, device="cuda").bfloat16()
    scaled = torch.empty_like(a)
    hone.run("rms_norm", x, w), hone.run("matmul", scaled, b), hone.run("rms_norm", x, w, given)
    plan = hone.bind("rms_norm", x, w)
    torch.cuda.synchronize()

    def capture(call):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = [one + 0 for one in call()]
        return graph, out

    def replay(graph, out, i):
        x.copy_(data[i % KINDS])
        a.fill_(i % KINDS + 1)
        for one in out:
            one.fill_(float("nan"))
        graph.replay()
        return all(right(one, i) for one in out if one.shape == x.shape)

    def twice(i):
        graph, out = capture(lambda: [hone.run("rms_norm", x, w) if i % 2 else plan(x, w)])
        return replay(graph, out, i) and replay(graph, out, i + 3)

    check("torch.cuda.graph, a capture and two replays a round", twice)
    graph, out = capture(lambda: [hone.run("rms_norm", x, w), hone.run("rms_norm", x, w, given),
                                  hone.run("matmul", torch.mul(a, 2, out=scaled), b)])

    def all_three(i):
        good = replay(graph, out, i)
        product = (a.float() * 2) @ b.float()
        return good and bool(torch.allclose(out[2].float(), product, rtol=2e-2, atol=1.0))

    check("torch.cuda.graph, one capture of three calls, a replay a round", all_three)
    still = torch.cuda.CUDAGraph()
    with torch.cuda.graph(still):
        refused("torch.cuda.graph, the first call of a kind inside", hone.UnsupportedError, "before the capture begins",
                lambda: hone.run("rms_norm", x[:300], w))
        refused("torch.cuda.graph, bind inside", hone.UnsupportedError, "before the capture begins",
                lambda: hone.bind("rms_norm", x[:300], w))
        kept = hone.run("rms_norm", x, w) + 0
    check("torch.cuda.graph, the capture goes on after a refusal", lambda i: replay(still, [kept], i))
    with hone.Runtime(store="none") as runtime:
        runtime.run("rms_norm", x, w)
        torch.cuda.synchronize()
        closed, out_closed = capture(lambda: [runtime.run("rms_norm", x, w)])
    del runtime
    gc.collect()
    check("torch.cuda.graph, replays after the runtime was closed", lambda i: replay(closed, out_closed, i))

    def unseen(i):
        graph, out = torch.cuda.CUDAGraph(), torch.full_like(x, float("nan"))
        with torch.cuda.graph(graph):
            torch.add(hone.run("rms_norm", x, w, given, stream=0), 0, out=out)
        given.fill_(float("nan"))
        return replay(graph, [out], i)

    check("torch.cuda.graph, control: the default stream in place of the captured one", unseen, control=True, rounds=20)


def cupy_checks():
    import cupy

    print("cupy", cupy.__version__)
    data, wanted, w = cupy.asarray(DATA), cupy.asarray(WANTED.astype(numpy.float32)), cupy.asarray(WEIGHT)
    big = cupy.random.standard_normal((4096, 4096), dtype=cupy.float32)
    side = cupy.cuda.Stream(non_blocking=True)
    x, given = cupy.empty((ROWS, DIM), cupy.float32), cupy.empty((ROWS, DIM), cupy.float32)
    hone.run("rms_norm", x, w), hone.run("rms_norm", x, w, given)
    cupy.cuda.Device().synchronize()

    def right(y, i):
        return bool(cupy.allclose(y, wanted[i % KINDS], rtol=1e-3, atol=1e-4))

    def body(call):
        def one(i):
            with side:
                given.fill(numpy.nan)
                x.fill(numpy.nan)
                cupy.matmul(big, big)
                x[...] = data[i % KINDS]
                return right(call(i).copy(), i)
        return one

    check("CuPy, a stream of its own", body(lambda i: hone.run("rms_norm", x, w, given) if i % 2 else hone.run("rms_norm", x, w)))
    def named(i):
        with side:
            given.fill(numpy.nan)
            x.fill(numpy.nan)
            cupy.matmul(big, big)
            x[...] = data[i % KINDS]
        y = hone.run("rms_norm", x, w, given, stream=side) if i % 2 else hone.run("rms_norm", x, w, stream=side.ptr)
        with side:
            return right(y.copy(), i)

    check("CuPy, stream= from outside", named)
    check("CuPy, control: the default stream in place of its own",
          body(lambda i: hone.run("rms_norm", x, w, given, stream=0)), control=True, rounds=min(ROUNDS, 100))
    cupy.cuda.Device().synchronize()
    with side:
        side.begin_capture()
        hone.run("rms_norm", x, w, given)
        graph = side.end_capture()

    def replay(i):
        with side:
            x[...] = data[i % KINDS]
            given.fill(numpy.nan)
            graph.launch(side)
            return right(given, i)

    check("CuPy, a captured graph", replay)
    if "torch" in sys.modules:
        import torch

        t, own = torch.from_numpy(DATA[0]).cuda(), torch.cuda.Stream()
        shared = torch.cuda.ExternalStream(side.ptr)
        with torch.cuda.stream(own), side:
            refused("torch and CuPy on two streams", ValueError, "their current streams differ",
                    lambda: hone.run("rms_norm", t, w))

        def both(i):
            with torch.cuda.stream(shared), side:
                t.fill_(float("nan"))
                cupy.matmul(big, big)
                t.copy_(torch.from_dlpack(data[i % KINDS]))
                return right(cupy.from_dlpack(hone.run("rms_norm", t, w)), i)

        check("torch and CuPy on one stream", both)


def jax_checks():
    import jax
    import jax.numpy as jnp

    print("jax", jax.__version__, jax.devices()[0])
    data, w = jnp.asarray(DATA), jnp.asarray(WEIGHT)
    big = jnp.asarray(generator.standard_normal((4096, 4096)) / 64, jnp.bfloat16)

    @jax.jit
    def late(data, big, i):
        m = jax.lax.fori_loop(0, 4, lambda _, m: m @ big, big)
        return data[i] + 0 * m.astype(jnp.float32).max()

    late(data, big, 0).block_until_ready()

    def body(call):
        def one(i):
            y = call(late(data, big, i % KINDS), i)
            noise = [late(data, big, k) for k in range(2)]  # takes what memory is free
            del noise
            return bool(numpy.allclose(numpy.asarray(y), WANTED[i % KINDS], rtol=1e-3, atol=1e-4))
        return one

    check("JAX, results that hone makes", body(lambda x, i: hone.run("rms_norm", x, w)))
    check("JAX, and JAX goes on with the result", body(lambda x, i: hone.run("rms_norm", x, w) + 0))
    if "torch" in sys.modules:
        import torch

        given, side = torch.empty(ROWS, DIM, device="cuda"), torch.cuda.Stream()

        def mixed(x, i):
            with torch.cuda.stream(side):
                given.fill_(float("nan"))
                return hone.run("rms_norm", x, w, given).cpu().numpy()

        check("JAX, results of torch on a side stream", body(mixed))
        graph = torch.cuda.CUDAGraph()
        ready = jnp.asarray(DATA[0]).block_until_ready()
        with torch.cuda.graph(graph):
            refused("JAX inside torch.cuda.graph", hone.UnsupportedError, "no current stream",
                    lambda: hone.run("rms_norm", ready, w, given))
            given.add_(1)


for name, part in (("torch", torch_checks), ("cupy", cupy_checks), ("jax", jax_checks)):
    if name in sys.argv[1:] or len(sys.argv) == 1:
        try:
            part()
        except ImportError as error:
            print(f"{name} is not here: {error}")
        except Exception as error:
            failed.append(name)
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
print("all came out right" if not failed else f"FAILED: {', '.join(failed)}")
sys.exit(bool(failed))
