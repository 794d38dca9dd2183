"""Part `agree` of scripts/gpu: two ranks on two GPUs of one machine, over NCCL, ask each other whether they choose alike.

Without arguments it starts both ranks and leaves with 1 when one of 40 calls differs, when a rank that is stopped for HONE_GPU_STOPPED seconds (60) keeps
the other from going on, or when the group cannot be used afterwards. HONE_GPU_RANKS=cpu: the same over gloo, with calls for the CPU, where no GPU is.
"""

import os
import signal
import socket
import subprocess
import sys
import time

STOPPED = float(os.environ.get("HONE_GPU_STOPPED", "60"))
ON_GPU = os.environ.get("HONE_GPU_RANKS", "cuda") != "cpu"
RANKS, TIMEOUT = 2, 5.0
KIND = "bf16" if ON_GPU else "f32"
CALLS = [f"{name}" for rows in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512) for name in (
    f"rms_norm({KIND}[{rows},4096], {KIND}[4096])", f"softmax(f32[{rows},1024])", f"matmul({KIND}[{rows},1024], {KIND}[1024,1024])",
    f"silu_mul({KIND}[{rows},4096], {KIND}[{rows},4096])")]


def rank_main(rank, port):
    import torch
    import torch.distributed

    import hone
    import hone.torch

    if ON_GPU:
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl" if ON_GPU else "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    calls = [f"{call} @cuda:{rank}" if ON_GPU else call for call in CALLS]
    begin = time.monotonic()
    agreement = hone.torch.agree(calls=calls, check=False, timeout=120)
    print(f"rank {rank}: {len(agreement.differences)} of {len(calls)} calls differ, {time.monotonic() - begin:.2f} s: {agreement}", flush=True)
    right = bool(agreement)
    if rank == 1:
        print("stops", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    begin = time.monotonic()
    agreement = hone.torch.agree(calls=calls, check=False, timeout=TIMEOUT if rank == 0 else 120)
    print(f"rank {rank}, {'the other' if rank == 0 else 'which was'} stopped: {time.monotonic() - begin:.2f} s: {agreement}", flush=True)
    right = right and (agreement.missing == (1,) and not agreement.differences if rank == 0 else bool(agreement))
    ones = torch.ones(1, device="cuda" if ON_GPU else "cpu")
    torch.distributed.all_reduce(ones)  # the first collective: it waits for the stopped rank, as collectives of NCCL do
    print(f"rank {rank}: sum {ones.item():.0f}", flush=True)
    torch.distributed.destroy_process_group()
    return 0 if right and ones.item() == RANKS else 1


def read_until(rank, beginning):
    """Prints the lines of a rank up to one that begins so. False: it ended before."""
    for line in iter(rank.stdout.readline, ""):
        print(line, end="", flush=True)
        if line.startswith(beginning):
            return True
    return False


def main():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, __file__, str(rank), str(port)], stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]
    if read_until(ranks[1], "stops"):
        begin = time.monotonic()
        went_on = read_until(ranks[0], "rank 0, the other stopped")  # must finish while rank 1 is still stopped
        time.sleep(max(0.0, STOPPED - (time.monotonic() - begin)))
        print(f"rank 1 stood still for {time.monotonic() - begin:.0f} s; rank 0 {'went on meanwhile' if went_on else 'ended'}", flush=True)
        os.kill(ranks[1].pid, signal.SIGCONT)
    for rank in ranks:
        print(rank.communicate(timeout=300)[0], end="", flush=True)
    return max(rank.returncode != 0 for rank in ranks)


if __name__ == "__main__":
    sys.exit(rank_main(int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) == 3 else main())
