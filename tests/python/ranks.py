"""One rank of a job, for test_ranks.py: ranks.py KIND RANK SIZE PORT. A line on standard input begins each act; what is printed is read by the
test."""

import contextlib
import os
import signal
import sys
import time

kind, rank, size, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
CALLS = ["rms_norm(f32[4,256], f32[256])", "softmax(f32[8,64])"]

import hone  # noqa: E402

if kind == "torch":
    import torch.distributed
    import hone.torch

    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)

    def agree(**options):
        return hone.torch.agree(None, CALLS, **options)
else:
    import jax
    import hone.jax

    jax.distributed.initialize(f"127.0.0.1:{port}", size, rank)

    def agree(**options):
        return hone.jax.agree(CALLS, **options)


def say(*words):
    print(*words, flush=True)


def stop_here():
    """As a rank that hangs: until the test lets it go on."""
    say("stops")
    os.kill(os.getpid(), signal.SIGSTOP)


def show(timeout=60):
    start = time.monotonic()
    try:
        with agree(timeout=timeout):
            say("alike", hone.decide(CALLS[0]).source)
    except hone.HoneError as error:
        say(type(error).__name__, str(error).replace("\n", " "), f"{time.monotonic() - start:.0f} s")


def differ():
    with hone.override("softmax", "portable") if rank == 1 else contextlib.nullcontext():
        show()


def stop():
    if rank == 1:
        stop_here()
    show(3)


def reduce():
    """The group is as it was."""
    if kind == "torch":
        ones = torch.ones(1)
        torch.distributed.all_reduce(ones)
        say("sum", int(ones.item()))
    show()


def tune():
    """On every rank; the one that comes first stops in the middle of its contest."""
    stopped = []

    def pause(progress):
        if not stopped and progress["done"] > 2:
            stopped.append(True)
            stop_here()

    start = time.monotonic()
    try:
        result = hone.tune(CALLS[0], seconds=1, wait_seconds=2, progress=pause if rank == 1 else False)
        say("tuned", result[0].kernel)
    except hone.BusyError as error:
        say("BusyError", error, f"{time.monotonic() - start:.0f} s")


def host():
    if rank == 0:
        stop_here()
    show(3)


for act in sys.stdin:
    {"show": show, "differ": differ, "stop": stop, "reduce": reduce, "tune": tune, "host": host}[act.strip()]()
os._exit(0)  # without the farewells of a job, in which ranks wait for each other
