"""Calls on a device of OpenCL, from the command: on PoCL, which is OpenCL on this machine's CPU."""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BUILD, COMMAND, DATA, NO, CommandTest

CALL = "rms_norm(f32[4,64], f32[64]) @opencl:0"
SHORT = ["--seconds", "5", "--evals", "3"]


class OpenCL(CommandTest):
    @classmethod
    def setUpClass(cls):
        # PoCL keeps what it compiles, which takes seconds on a busy machine: once for all tests.
        cls.cache = tempfile.mkdtemp(prefix="hone-pocl-")
        cls.addClassCleanup(shutil.rmtree, cls.cache, ignore_errors=True)

    def pocl(self, **changes):
        env = {"HONE_OPENCL": None, "POCL_CACHE_DIR": self.cache}
        env.update(changes)
        return env

    def platform(self, env):
        rows = self.hone("devices", "--json", env=env).json["platforms"]
        return {row["platform"]: row for row in rows}["opencl"]

    def compiled(self):
        folder = self.folder / "cache" / "hone" / "compiled"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def test_a_driver_that_aborts_ends_no_command(self):
        """PoCL aborts where there is no /sys, as in some containers."""
        hidden = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys && exec \"$@\"", "sh", COMMAND]
        for arguments in (["list", "rms_norm", "--all"], ["devices"], ["doctor"]):
            answer = subprocess.run([*hidden, *arguments], env=self.environment(self.pocl()), cwd=self.folder, text=True,
                                    capture_output=True, timeout=120)
            if "unshare" in answer.stderr or "mount" in answer.stderr:
                self.skipTest(f"/sys cannot be hidden here: {answer.stderr}")
            self.assertIn(answer.returncode, (0, 1), answer.stderr)
            if arguments[0] != "doctor":
                self.assertIn("a driver of opencl", answer.stdout)

    def test_devices_shows_what_the_device_is(self):
        opencl = self.platform(self.pocl())
        self.assertTrue(opencl["available"], opencl["reason"])
        device = opencl["devices"][0]
        self.assertEqual((device["backend"], device["device"]), ("cpu", "opencl:0"))
        self.assertTrue(device["fingerprint"].startswith("opencl|Portable%20Computing%20Language,"))
        for name in ("name", "architecture", "driver", "runtime", "compiler"):
            self.assertTrue(device[name], name)
        self.assertGreater(device["memory_bytes"], 0)

    def test_devices_says_which_package_is_missing(self):
        opencl = self.platform({})
        self.assertFalse(opencl["available"])
        self.assertIn("ocl-icd-libopencl1", opencl["reason"])
        opencl = self.platform(self.pocl(OCL_ICD_VENDORS=str(self.folder)))
        self.assertFalse(opencl["available"])
        self.assertIn("pocl-opencl-icd", opencl["reason"])

    def test_tune_chooses_a_verified_kernel_and_the_store_answers(self):
        self.hone("tune", CALL, *SHORT, env=self.pocl())
        answer = self.hone("explain", CALL, "--json", env=self.pocl()).json
        self.assertEqual((answer["platform"], answer["source"], answer["verified"]), ("opencl", "store", True))

    def test_here_is_every_device_of_the_machine_and_a_call_on_one_is_its_own(self):
        on_cpu = CALL.split(" @")[0]
        for call in (CALL, on_cpu):
            self.hone("tune", call, "--seconds", "1", "--evals", "1", env=self.pocl())
        for device, count in (("here", 2), ("opencl:0", 1), ("cpu:0", 1)):
            bundle = self.hone("store", "export", "-", "--device", device, env=self.pocl()).json
            self.assertEqual(len(bundle["entries"]), count, device)
            lock = self.hone("lock", "--device", device, "--lock", f"{device}.lock", "--json", env=self.pocl()).json
            self.assertEqual(lock["choices"], count, device)
        self.assertEqual(self.hone("lock", CALL, "--json", env=self.pocl()).json["choices"], 1)
        self.assertEqual(self.hone("store", "remove", CALL, "--json", env=self.pocl()).json, {"removed": 1})
        self.assertEqual(self.hone("store", "get", on_cpu, "--json", env=self.pocl()).json["platform"], "native")

    def test_a_stable_contest_compares_bits_on_the_device(self):
        page = self.folder / "page.html"
        answer = self.hone("tune", "rms_norm(f32[4,1000], f32[1000]) @opencl:0", "--stable", "--seconds", "30",
                           "--evals", "12", "--report", str(page), "--json", env=self.pocl())
        (entry,) = answer.json["entries"]
        self.assertEqual(entry["evidence"]["regime"], "warm-stable")
        self.assertEqual(entry["evidence"]["verified_against"], "reference, and the default's bits")
        data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1])
        tried = [(row["config"], row.get("failure")) for row in data["entries"][0]["trail"]["evaluations"] if row["kernel"] == "opencl"]
        default, failure = tried[0]
        self.assertIsNone(failure)
        # Rows beside each other change no sum; how many items share a row's sum does.
        for config, failure in tried:
            if all(config[name] == default[name] for name in ("items", "vector")):
                self.assertIsNone(failure, config)
        (row,) = [row for row in entry["evidence"]["kernels"] if row["kernel"] == "opencl"]
        self.assertGreater(row["rejected"]["unstable"], 0)
        self.assertIn((entry["config"], None), tried)
        stable = self.pocl(HONE_STABLE="1")
        served = self.hone("explain", "rms_norm(f32[4,1000], f32[1000]) @opencl:0", "--json", env=stable).json
        self.assertEqual((served["source"], served["config"]), ("store", entry["config"]))

    def test_an_audit_names_another_driver_and_what_became_slower_with_it(self):
        document = self.hone("tune", CALL, *SHORT, "--json", env=self.pocl()).json
        self.assertTrue(document["device"].startswith("opencl|"))
        document["environment"]["driver"] = "0.1"
        document["entries"][0]["evidence"]["time_ns"] = 1e-6  # no run was ever so quick
        self.hone("store", "put", "--json", input=json.dumps(document), env=self.pocl())
        audit = self.hone("tune", "--audit", CALL, "--threshold", "1e9", "--seconds", "60", "--json", env=self.pocl(),
                          code=NO).json
        (row,) = audit["choices"]
        self.assertTrue(row["changed"].startswith("driver was 0.1, is "), row)
        self.assertGreater(row["drift"], 5)
        self.assertEqual((row["passed"], audit["summary"]["changed"]), (False, 1))

    def test_a_driver_that_reserves_more_memory_than_there_is_is_found_by_the_worker(self):
        env = {"HONE_OPENCL": str(BUILD / "tests" / "fakes" / "fake_opencl.so"), "FAKE_OPENCL_PLATFORMS": "2",
               "FAKE_OPENCL_RESERVES": str(1 << 41)}
        pack = DATA.resolve().parent / "examples" / "packs" / "scale_opencl"
        self.hone("tune", "--pack", str(pack), "scale(f32[100]) @opencl:1", "--seconds", "20", "--evals", "2", env=env)

    def test_a_second_tune_compiles_nothing(self):
        arguments = ["tune", CALL, "--seconds", "2", "--evals", "1", "--fresh"]
        self.hone(*arguments, env=self.pocl())
        once = self.compiled()
        self.assertGreater(len(once), 0)
        self.hone(*arguments, env=self.pocl(), code=None)
        self.assertEqual(self.compiled(), once)

    def test_a_product_in_half_precision_is_verified(self):
        call = "matmul(bf16[17,30], bf16[21,30], transpose_b=true) @opencl:0"
        self.hone("tune", call, "--seconds", "5", "--evals", "2", env=self.pocl())
        answer = self.hone("explain", call, "--json", env=self.pocl()).json
        self.assertEqual((answer["kernel"], answer["verified"]), ("opencl", True))

    def test_run_and_bench_place_their_inputs_on_the_device(self):
        answer = self.hone("run", CALL, "--json", env=self.pocl(HONE_POLICY="heuristic")).json
        self.assertEqual((answer["platform"], answer["verified"]), ("opencl", True))
        rows = self.hone("bench", CALL, "--json", "--seconds", "0.2", env=self.pocl()).json["calls"][0]["rows"]
        self.assertEqual({row["kernel"] for row in rows}, {"opencl"})

    def test_a_pack_of_opencl_is_tuned_and_one_that_opencl_cannot_launch_is_refused(self):
        pack = self.folder / "pack"
        shutil.copytree(DATA.parent / "examples" / "packs" / "scale_opencl", pack)
        self.hone("pack", "check", str(pack), env=self.pocl())
        call = "scale(f32[100]) @opencl:0"
        env = self.pocl(HONE_PACK_PATH=str(pack))
        self.hone("tune", call, "--seconds", "5", "--evals", "1", env=env)
        answer = self.hone("explain", call, "--json", env=env).json
        self.assertEqual((answer["kernel"], answer["platform"], answer["verified"]), ("groups", "opencl", True))
        for field, value, words in (("target", "sm_80", "write cl_12"), ("shared", "1024", "local(BYTES)")):
            document = json.loads((pack / "pack.json").read_text())
            document["kernels"][1][field] = value
            changed = self.folder / field
            shutil.copytree(pack, changed)
            (changed / "pack.json").write_text(json.dumps(document))
            answer = self.hone("pack", "check", str(changed), code=NO, env=self.pocl())
            self.assertIn(words, answer.out + answer.err)

    def test_a_kernel_of_a_pack_is_given_scratch_memory(self):
        source = b"""__kernel void by_way(__global const float *x, __global float *y, __global float *part, int n, float by)
{
    int i = get_global_id(0);
    if (i >= n) return;
    part[i] = x[i];
    y[i] = by * part[i];
}
"""
        pack = self.folder / "pack"
        shutil.copytree(DATA.parent / "examples" / "packs" / "scale_opencl", pack)
        (pack / "by_way.cl").write_bytes(source)
        document = json.loads((pack / "pack.json").read_text())
        document["kernels"][1] = {
            "algorithm": "scale", "name": "by_way", "platform": "opencl", "backend": "any", "file": "by_way.cl",
            "sha256": hashlib.sha256(source).hexdigest(), "entry": "by_way", "grid": "ceildiv(n, 64)", "block": 64,
            "arguments": "x, y, scratch, i32(n), f32(factor)", "scratch": "4 * n"}
        (pack / "pack.json").write_text(json.dumps(document))
        answer = self.hone("run", "--pack", str(pack), "scale(f32[100]) @opencl:0", "--json", env=self.pocl()).json
        self.assertEqual((answer["kernel"], answer["verified"]), ("by_way", True))


if __name__ == "__main__":
    unittest.main()
