"""The real ejkernel, whole: what it recorded and lowered is read, tuned, and handed back."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, DATA
from test_stores import StoreTest

PACKAGES = DATA.parent / "build-python"  # scripts/setup installs ejkernel and jax there
TUNED = {"attention", "flash_attention", "mean_pooling", "rwkv4", "scaled_dot_product_attention"}


def run_ejkernel(script, *arguments, timeout=500):
    """A script beside this one, with ejkernel and tokamax at hand."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
    env |= {"EJKERNEL_OPS_RECORD": "1", "EJKERNEL_OPS_STAMP": "hash", "JAX_PLATFORMS": "cpu", "JAXTYPING_DISABLE": "1",
            "PYTHONPATH": os.pathsep.join(map(str, (PACKAGES, PACKAGES / "ejkernel-imports", PACKAGES / "tokamax-imports")))}
    command = [sys.executable, "-B", pathlib.Path(__file__).with_name(script), *arguments]
    made = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    if made.returncode != 0:
        raise AssertionError(f"ejkernel could not be called (scripts/setup python):\n{made.stderr}")


@unittest.skipUnless((BUILD / "python").exists(), "the Python package is not built")
class Python(unittest.TestCase):
    def test_programs_of_ejkernel_run_what_hone_tuned(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
        env |= {"PYTHONPATH": f"{BUILD.resolve()}/python:{PACKAGES}", "HONE_TEST_COMMAND": str(BUILD.resolve() / "hone"),
                "HONE_DEVICE_LOCKS": str(BUILD.resolve()), "HONE_REQUIRE": "1"}
        command = [sys.executable, "-B", "-m", "unittest", "test_ejkernel"]
        made = subprocess.run(command, cwd=DATA / "python", env=env, capture_output=True, text=True, timeout=500)
        self.assertEqual(made.returncode, 0, made.stderr)


class Ejkernel(StoreTest):
    @classmethod
    def setUpClass(cls):
        if not (PACKAGES / "ejkernel-imports").exists():
            raise AssertionError(f"{PACKAGES} is not whole: scripts/setup python")
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="hone-ejkernel-"))
        cls.addClassCleanup(shutil.rmtree, cls.made)
        run_ejkernel("ejkernel_calls.py", cls.made)

    def listed_rows(self, path):
        return self.hone("offline", "--list", "--json", str(path)).json["operations"]

    def listed(self, name):
        return {row["algorithm"]: row for row in self.listed_rows(self.made / name)}

    def calls(self, rows):
        return {rows[name]["call"] for name in TUNED}

    def test_what_it_recorded_is_dumped_imported_and_tuned(self):
        recorded = json.loads((self.made / "calls.json").read_text())["invocations"]
        self.assertEqual(self.hone("record", "import", str(self.made / "calls.json"), "--json").json, {"imported": 6})
        rows = self.hone("record", "list", "--json").json["invocations"]
        self.assertEqual({row["key"] for row in rows}, {row["key"] for row in recorded})
        table = self.hone("record", "list").out
        self.assertIn("flash_attention(f32[1,32,4,16], f32[1,32,2,16], f32[1,32,2,16], causal=true)", table)
        result = self.hone("tune", "--recorded", "--seconds", "1", "--evals", "6", "--json", code=None).json
        self.assertEqual({entry["algorithm"] for entry in result["entries"]}, TUNED)
        self.assertEqual([row["reason"].split(";")[0] for row in result["failed"]], ["no algorithm named 'recurrent'"])
        # The program's operations are the recorded ones, and decided.
        operations = self.listed("program.mlir")
        self.assertEqual({row["matched"] for row in operations.values()}, {"recorded"})
        self.assertEqual({row["key"] for row in operations.values()}, {row["key"] for row in recorded})
        self.assertEqual({entry["call"] for entry in result["entries"]}, self.calls(operations))
        for call in self.calls(operations):
            self.assertEqual(self.hone("explain", call, "--json").json["source"], "store")
        again = self.hone("tune", "--recorded", "--seconds", "1", "--evals", "6", code=None).out
        # But for those whose contest could not tell who is the fastest: they are taken up again.
        self.assertRegex(again, "[1-5] of 6 calls were decided already")
        self.assertNotIn("spread", again)

    def test_a_program_alone_is_enough(self):
        operations = self.listed("program.mlir")
        self.assertEqual({name: row["matched"] for name, row in operations.items()},
                         {**dict.fromkeys(TUNED, "proved"), "recurrent": "none"})
        self.assertEqual(operations["recurrent"]["reason"], "hone has no algorithm named 'recurrent'")
        program = str(self.made / "program.mlir")
        result = self.hone("offline", program, "--seconds", "1", "--evals", "6", "--allow-missing", "--json").json
        self.assertEqual({entry["call"] for entry in result["entries"]}, self.calls(operations))
        self.assertEqual(self.stat()["aliases"], len(TUNED))

    def test_random_operations_are_proved_and_none_is_wrong(self):
        """What is proved from the program alone is what ejkernel itself recorded. HONE_SOAK=1: 500 of them."""
        count = 500 if os.environ.get("HONE_SOAK") == "1" else 100
        folder = self.made / "random"
        folder.mkdir()
        run_ejkernel("ejkernel_random.py", folder, "7", str(count), timeout=3600)
        programs = sorted(folder.glob("*.mlir"))
        alone = {row["key"]: row for path in programs for row in self.listed_rows(path)}
        self.hone("record", "import", str(folder / "truth.json"))
        known = {row["key"]: row for path in programs for row in self.listed_rows(path)}
        self.assertEqual({row["matched"] for row in known.values()}, {"recorded"})
        proved = {key: row for key, row in alone.items() if row["matched"] == "proved"}
        self.assertGreaterEqual(len(proved), 0.99 * len(alone), [key for key in alone if key not in proved])
        for key, row in proved.items():
            self.assertEqual((row["call"], row["reason"]), (known[key]["call"], known[key]["reason"]))
        self.assertEqual([row for row in alone.values() if row["tunable"] and row["matched"] != "proved"], [])

    def test_where_the_keys_are_cut_the_table_says_so(self):
        operations = self.listed("program.hlo")
        self.assertEqual(set(operations), TUNED | {"recurrent"})
        self.assertEqual({row["key"] for row in operations.values()}, {None})
        self.assertEqual({row["matched"] for row in operations.values()}, {"operands", "none"})
