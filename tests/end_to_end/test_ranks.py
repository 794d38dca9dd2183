"""Ranks of a job as processes: torch.distributed over gloo, and jax.distributed, on the CPU."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, DATA

PACKAGES = DATA.parent / "build-python"
TORCH = PACKAGES / "torch-cpu"
NORM = "rms_norm(f32[4,256], f32[256])"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Ranks(unittest.TestCase):
    kind, path = "torch", f"{BUILD}/python:{TORCH}:{PACKAGES}"

    def setUp(self):
        if not (TORCH / "torch").is_dir() and self.kind == "torch" and not os.environ.get("HONE_REQUIRE"):
            self.skipTest("PyTorch is not there: scripts/setup torch installs it")
        folder = tempfile.TemporaryDirectory(prefix="hone-ranks-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ranks = []
        self.addCleanup(self.end)

    def end(self):
        for rank in self.ranks:
            rank.kill()
            rank.communicate()

    def environment(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON", "TORCH", "JAX"))}
        env |= {"PYTHONPATH": self.path, "HONE_STORE": f"sqlite:{self.folder}/store.db", "HOME": str(self.folder),
                "JAX_PLATFORMS": "cpu", "HONE_CUDA_DRIVER": "/nowhere", "HONE_DEVICE_LOCKS": str(self.folder),
                "GLOO_SOCKET_IFNAME": "lo"}
        return env

    def begin(self, size):
        env = self.environment()
        port = free_port()
        for rank in range(size):
            log = open(self.folder / f"rank{rank}.txt", "w")
            self.addCleanup(log.close)
            self.ranks.append(subprocess.Popen(
                [sys.executable, "-B", "-W", "ignore", "ranks.py", self.kind, str(rank), str(size), str(port)], env=env,
                cwd=DATA / "python", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log))

    def act(self, name, *ranks):
        for rank in ranks or range(len(self.ranks)):
            self.ranks[rank].stdin.write(name + "\n")
            self.ranks[rank].stdin.flush()

    def line(self, expected, *ranks):
        """The next line of each rank."""
        for rank in ranks or range(len(self.ranks)):
            line = self.ranks[rank].stdout.readline()
            if not line:
                self.fail(f"rank {rank} ended: {(self.folder / f'rank{rank}.txt').read_text()}")
            self.assertRegex(line, expected, f"rank {rank}")

    def wake(self, rank):
        os.kill(self.ranks[rank].pid, signal.SIGCONT)

    def reduce(self):
        self.act("reduce")
        if self.kind == "torch":
            self.line("sum 3")
        self.line("alike overlay")

    def test_ranks_find_what_differs_and_one_that_is_stopped_hangs_nobody(self):
        self.begin(3)
        self.act("show")
        self.line("alike overlay")
        with self.subTest("what differs is named on every rank"):
            self.act("differ")
            self.line(r"IncompatibleError the ranks do not choose alike: softmax\(f32\[8,64\]\): rank 1 chooses native/portable .* by override, "
                      r"rank 0 chooses native/\w+ .* by heuristic")
        with self.subTest("a stopped rank is named after the timeout, and finds the words of the others later"):
            self.act("stop")
            self.line("stops", 1)
            self.line("BusyError rank 1 of 3 had not said what it chooses after 3.* [3-9] s", 0, 2)
            self.wake(1)
            self.line("alike overlay", 1)
            self.reduce()
        with self.subTest("a rank that stops in its contest is waited for on the store, and not for ever"):
            self.act("tune", 1)
            self.line("stops", 1)
            self.act("tune", 0, 2)
            self.line(r"BusyError .* \d s", 0, 2)
            self.wake(1)
            self.line("tuned ", 1)
            self.reduce()
        with self.subTest("where the process that holds the table is stopped, nobody hangs either"):
            self.act("host")
            self.line("stops", 0)
            self.line(r"BusyError ranks? 0.* of 3 had not said .* [3-9] s", 1, 2)
            self.wake(0)


    def test_the_part_of_two_gpus_runs_on_the_cpu(self):
        """scripts/gpu-agree.py over gloo: what a machine with two GPUs runs is known to run."""
        if self.kind != "torch":
            return
        env = {**self.environment(), "HONE_GPU_RANKS": "cpu", "HONE_GPU_STOPPED": "1"}
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", DATA.parent / "scripts" / "gpu-agree.py"], env=env, text=True,
                              capture_output=True, timeout=500, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in (0, 1):
            self.assertRegex(done.stdout, rf"(?m)^rank {rank}: 0 of 40 calls differ, \S+ s: 2 ranks choose alike")
            self.assertIn(f"rank {rank}: sum 2\n", done.stdout)
        self.assertRegex(done.stdout, r"rank 0, the other stopped: \S+ s: rank 1 of 2 had not said what it chooses")
        self.assertRegex(done.stdout, r"rank 1 stood still for \d+ s; rank 0 went on meanwhile")
        self.assertRegex(done.stdout, r"rank 1, which was stopped: \S+ s: 2 ranks choose alike")


class Processes(Ranks):
    kind, path = "jax", f"{BUILD}/python:{PACKAGES}"


if __name__ == "__main__":
    unittest.main()
