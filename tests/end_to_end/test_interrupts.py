"""A contest that is broken off, or killed: what was found stays, and nobody is left behind."""

import json
import os
import pathlib
import signal
import subprocess
import time

from support import BUILD, DONE, INTERRUPTED, NORM, CommandTest

LONG = "matmul(f32[192,192], f32[192,192])"


def workers():
    """Processes of this build's worker: id -> parent."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(folder / "exe") == str((BUILD / "hone-worker").resolve()):
                found[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    return found


class Interrupts(CommandTest):
    def broken_off(self, number):
        """Starts a long contest and sends it a signal once something was stored. Returns its exit code."""
        process = self.start("tune", LONG, "--seconds", "120", "--evals", "100000", "--json")
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            if (self.folder / "store.db").exists() and self.stat()["measurements"] >= 3:
                break
        self.assertIsNone(process.poll(), "the contest ended before it was interrupted")
        mine = [child for child, parent in workers().items() if parent == process.pid]
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
        deadline = time.monotonic() + 120
        while set(mine) & set(workers()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(set(mine) & set(workers()), set(), "a worker was left behind")
        return process.returncode, out, err

    def interrupted_while_it_reads(self, *arguments, text):
        """Sends the signal once the command catches it and waits for its standard input, and then the text."""
        process = self.start(*arguments, stdin=subprocess.PIPE)
        deadline = time.monotonic() + 60
        caught = 0
        while not caught & 1 << signal.SIGINT - 1 and time.monotonic() < deadline:
            time.sleep(0.02)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            caught = int(status.split("SigCgt:", 1)[1].split()[0], 16)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(text, timeout=60)
        return process.returncode, out, err

    def test_only_what_was_broken_off_is_130(self):
        document = json.dumps(self.hone("tune", NORM, "--seconds", "1", "--evals", "4", "--json").json)
        self.use_new_store()
        code, out, err = self.interrupted_while_it_reads("store", "put", text=document)
        self.assertEqual((code, self.stat()["decisions"]), (DONE, 1), out + err)
        self.use_new_store()
        self.hone("store", "put", input=json.dumps(dict(json.loads(document), entries=[])))
        code, out, err = self.interrupted_while_it_reads("store", "import", "-", text=document)
        self.assertEqual((code, self.stat()["decisions"]), (INTERRUPTED, 0), out + err)
        self.assertIn("interrupted: nothing was imported", err)

    def test_what_was_found_before_an_interrupt_is_stored(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            code, _, err = self.broken_off(number)
            self.assertEqual(code, INTERRUPTED, err)
        found = self.hone("explain", LONG, "--json").json  # nothing, where no candidate was verified before the signal
        if found["source"] == "store":
            self.assertIn("cancelled before the finals", found["evidence"]["undecided"])
        measured = self.stat()["measurements"]
        self.assertGreaterEqual(measured, 3)
        self.hone("tune", LONG, "--seconds", "2", "--evals", "3")
        self.assertGreaterEqual(self.stat()["measurements"], measured)
        self.assertEqual(self.hone("explain", LONG, "--json").json["source"], "store")

    def test_a_killed_contest_leaves_a_sound_store(self):
        code, _, _ = self.broken_off(signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertGreaterEqual(self.stat()["measurements"], 3)
        self.hone("store", "list")
        self.hone("tune", LONG, "--seconds", "2", "--evals", "3")

    def test_a_killed_worker_costs_one_candidate(self):
        process = self.start("tune", NORM, "--seconds", "6", "--evals", "60", "--json")
        deadline = time.monotonic() + 120
        mine = []
        while not mine and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if not (self.folder / "store.db").exists() or self.stat()["measurements"] == 0:
                continue  # what asks for devices, or computes the reference, is no candidate's
            mine = [child for child, parent in workers().items() if parent == process.pid]
        for child in mine:
            os.kill(child, signal.SIGKILL)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn('"entries":[{', out)
