"""Part `agree` of scripts/gpu: two ranks on two GPUs of one machine, over NCCL, ask each other whether they choose alike.

Without arguments it starts both ranks and leaves with 1 when one of 40 calls differs, when a rank that is stopped for HONE_GPU_STOPPED seconds (60) keeps
the other from going on, or when the group cannot be used afterwards.
"""

import os
import signal
import socket
import subprocess
import sys
import time

STOPPED = float(os.environ.get("HONE_GPU_STOPPED", "60"))
RANKS, TIMEOUT = 2, 5.0
CALLS = [f"{name}" for rows in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512) for name in (
    f"rms_norm(bf16[{rows},4096], bf16[4096])", f"softmax(f32[{rows},1024])", f"matmul(bf16[{rows},1024], bf16[1024,1024])",
    f"silu_mul(bf16[{rows},4096], bf16[{rows},4096])")]


def rank_main(rank, port):
    import torch
    import torch.distributed

    import hone
    import hone.torch

    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    calls = [f"{call} @cuda:{rank}" for call in CALLS]
    begin = time.monotonic()
    agreement = hone.torch.agree(calls=calls, check=False, timeout=120)
    print(f"rank {rank}: {len(agreement.differences)} of {len(calls)} calls differ, {time.monotonic() - begin:.2f} s: {agreement}", flush=True)
    right = bool(agreement)
    if rank == 1:
        print("stops", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    begin = time.monotonic()
    agreement = hone.torch.agree(calls=calls, check=False, timeout=TIMEOUT if rank == 0 else 120)
    took = time.monotonic() - begin
    print(f"rank {rank}, the other stopped: {took:.2f} s: {agreement}", flush=True)
    right = right and (agreement.missing == (1,) and took < TIMEOUT + 5 if rank == 0 else bool(agreement))
    ones = torch.ones(1, device="cuda")
    torch.distributed.all_reduce(ones)  # the first collective of all: it waits for the stopped rank, as NCCL's do
    print(f"rank {rank}: sum {ones.item():.0f}", flush=True)
    return 0 if right and ones.item() == RANKS else 1


def main():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, __file__, str(rank), str(port)], stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]
    for line in ranks[1].stdout:
        if line.startswith("stops"):
            break
        print(line, end="")
    time.sleep(STOPPED)
    if ranks[1].poll() is None:
        os.kill(ranks[1].pid, signal.SIGCONT)
    for rank in ranks:
        print(rank.communicate(timeout=300)[0], end="")
    return max(rank.returncode != 0 for rank in ranks)


if __name__ == "__main__":
    sys.exit(rank_main(int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) == 3 else main())
