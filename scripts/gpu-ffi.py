"""hone as a library for tvm-ffi on a GPU, with torch's tensors and streams: scripts/gpu, part ffi. Arguments: libhone_ffi.so, rounds."""

import sys
import time

import torch
import tvm_ffi

library, rounds = tvm_ffi.load_module(sys.argv[1]), int(sys.argv[2])
print("tvm_ffi", tvm_ffi.__version__, "torch", torch.__version__)
run, bind = library.hone_run, library.hone_bind


def expected(x, weight):
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, 1e-6)


x, weight = torch.randn(4096, 1024, device="cuda"), torch.randn(1024, device="cuda")
y = torch.empty_like(x)
run("rms_norm", x, weight, y)
torch.testing.assert_close(y, expected(x, weight), rtol=1e-5, atol=1e-5)
made = run("rms_norm", x, weight)  # allocated by torch's allocator, which tvm_ffi set in its environment
torch.testing.assert_close(torch.from_dlpack(made), expected(x, weight), rtol=1e-5, atol=1e-5)
plan = bind("rms_norm", x, weight, y)
print("given, made and bound results are right;", library.hone_decide("rms_norm", x, weight))
for error, call in ((ValueError, lambda: run("rms_norm", x, x, y)), (ValueError, lambda: plan(x[:7], weight, y[:7]))):
    try:
        call()
    except error as why:
        print(type(why).__name__, str(why).splitlines()[-1])
    else:
        raise SystemExit("a wrong call was not refused")

# A separate stream writes the data late, after a product. The result is copied at once on the same stream.
big, stream = torch.randn(4096, 4096, device="cuda"), torch.cuda.Stream()


def wrong_rounds(call, side):
    wrong = 0
    for i in range(rounds):
        with torch.cuda.stream(side):
            x.zero_()
            torch.mm(big, big)
            x.fill_(float(i + 1))
            x[:, 0] = 0.0
            call()
            copy = y[0].clone()
            right = expected(x[:1], weight)[0]
        side.synchronize()
        wrong += not torch.allclose(copy, right, rtol=1e-4, atol=1e-4)
    return wrong


def in_environment(call):
    def made():
        with tvm_ffi.use_torch_stream(torch.cuda.current_stream()):
            call()
    return made


print("on a stream of the environment, hone_run:", wrong_rounds(in_environment(lambda: run("rms_norm", x, weight, y)), stream), "wrong of",
      rounds)
print("a plan:", wrong_rounds(in_environment(lambda: plan(x, weight, y)), stream), "wrong of", rounds)
before = sys.getrefcount(x)
torch.cuda.synchronize()
memory = torch.cuda.memory_allocated()
for name, call in (("hone_run", lambda: run("rms_norm", x, weight, y)), ("a plan", lambda: plan(x, weight, y)),
                   ("hone_run, result made", lambda: run("rms_norm", x, weight))):
    start = time.perf_counter()
    for _ in range(2000):
        call()
    took = (time.perf_counter() - start) / 2000 * 1e6
    torch.cuda.synchronize()
    print(f"{name}: {took:.2f} us a call from Python")
assert sys.getrefcount(x) == before, "references were kept"
assert torch.cuda.memory_allocated() == memory, "memory was kept"
