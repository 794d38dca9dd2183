"""Calls that XLA's plugin for the CPU competes for, from the command."""

import json
import shutil
import subprocess
import unittest

from support import COMMAND, DATA, CommandTest

PLUGIN = DATA.resolve().parent / "build-python" / "xla_plugins" / "xla_cpu_pjrt" / "xla_cpu_pjrt.so"


class Xla(CommandTest):
    def with_plugin(self, **changes):
        self.assertTrue(PLUGIN.exists(), f"{PLUGIN} is missing: scripts/setup python brings it")
        return {"HONE_PJRT_PLUGIN": str(PLUGIN), "HONE_COMPILE_CACHE": str(self.folder / "cache"), **changes}

    def kernels(self, call, *options):
        answer = self.hone("tune", call, "--seconds", "8", "--evals", "16", "--json", *options, env=self.with_plugin())
        rows = answer.json["entries"][0]["evidence"]["kernels"]
        return {(row["kernel"], row["platform"]): row for row in rows if row["tried"]}

    def test_devices_says_that_the_plugin_is_here_or_what_is_missing(self):
        for env, here in ((self.with_plugin(), True), ({"HONE_PJRT_PLUGIN": "/nowhere/plugin.so"}, False)):
            rows = {row["platform"]: row for row in self.hone("devices", "--json", env=env).json["platforms"]}
            self.assertEqual((rows["xla"]["available"], rows["pallas"]["available"]), (here, here))
        self.assertIn("there is no file /nowhere/plugin.so", rows["xla"]["reason"])

    def test_the_plugin_that_setup_installs_is_found_by_the_hone_beside_it(self):
        self.with_plugin()
        rows = {row["platform"]: row for row in self.hone("devices", "--json", env={"HONE_PJRT_PLUGIN": None}).json["platforms"]}
        self.assertEqual((rows["xla"]["available"], rows["pallas"]["available"]), (True, True), rows["xla"])
        self.assertIn(str(PLUGIN.resolve()), rows["xla"]["plugins"])
        self.assertIn("triton 3.", rows["triton"]["plugins"])
        (entry,) = self.hone("tune", "rms_norm(f32[16,256], f32[256])", "--platform", "xla", "--seconds", "10", "--evals", "2", "--json",
                             env={"HONE_PJRT_PLUGIN": None, "HONE_COMPILE_CACHE": str(self.folder / "cache")}).json["entries"]
        self.assertEqual(entry["kernel"], "xla")

    def test_an_installed_hone_does_not_look_beside_its_folder(self):
        installed = self.folder / "bin"
        installed.mkdir()
        (self.folder / "build-python").symlink_to(PLUGIN.parents[2])
        shutil.copy(COMMAND, installed / "hone")
        rows = json.loads(subprocess.run([installed / "hone", "devices", "--json"], env=self.environment({"HONE_PJRT_PLUGIN": None}),
                                         capture_output=True, text=True, check=True).stdout)["platforms"]
        self.assertNotIn("build-python", json.dumps(rows))
        self.assertNotIn(str(PLUGIN.resolve()), json.dumps(rows))

    def test_list_says_that_the_kernels_for_the_cpu_run_here_or_what_is_missing(self):
        # The devices are those of others: xla visits them.
        def rows(env):
            kernels = self.hone("list", "rms_norm", "--json", env=env).json["algorithms"][0]["kernels"]
            return {row["backend"]: row for row in kernels if row["platform"] == "xla"}

        listed = rows(self.with_plugin())
        self.assertEqual((listed["cpu"]["runs_here"], listed["cpu"]["reason"]), (True, None))
        self.assertFalse(any(row["runs_here"] for backend, row in listed.items() if backend != "cpu"))
        cpu = rows({"HONE_PJRT_PLUGIN": "/nowhere/plugin.so"})["cpu"]
        self.assertFalse(cpu["runs_here"])
        self.assertIn("there is no file /nowhere/plugin.so", cpu["reason"])

    def test_the_built_in_kernels_are_verified(self):
        for call in ("matmul(f32[17,33], f32[33,9])", "matmul(bf16[8,64], bf16[24,64], transpose_b=true)",
                     "rms_norm(f32[3,5,77], f32[77])", "rms_norm(f16[1,1], f16[1])"):
            row = self.kernels(call, "--platform", "xla")[("xla", "xla")]
            self.assertIsNotNone(row["time_ns"], (call, row))

    def test_what_was_chosen_answers_from_the_store(self):
        # The GPU's kernel has the name, too.
        for call in ("rms_norm(f32[16,256], f32[256])", "matmul(f32[16,64], f32[64,32])"):
            self.hone("tune", call, "--platform", "xla", "--seconds", "10", "--evals", "4", env=self.with_plugin())
            answer = self.hone("explain", call, "--json", env=self.with_plugin())
            self.assertEqual(answer.err, "")
            self.assertEqual([answer.json[field] for field in ("source", "platform", "verified")],
                             ["store", "xla", True])
            forced = self.hone("explain", call, "--json", env=self.with_plugin(HONE_FORCE=call.split("(")[0] + "=xla")).json
            self.assertEqual((forced["source"], forced["platform"]), ("override", "xla"))
            lock = str(self.folder / "hone.lock")
            self.hone("lock", "--lock", lock, call, env=self.with_plugin())
            locked = self.hone("explain", call, "--json", env=self.with_plugin(HONE_LOCK=lock)).json
            self.assertEqual((locked["source"], locked["platform"]), ("lock", "xla"))
        self.assertEqual(self.hone("store", "prune", "--json", env=self.with_plugin()).json["decisions"], 0)

    def test_a_second_tune_compiles_nothing(self):
        # Every config is compiled, and a compilation leaves a file; what is loaded leaves none. What may win is compiled
        # once more, with another epsilon: which of the three may win can differ between two contests.
        configs = 3
        folder = self.folder / "cache"
        arguments = ["tune", "rms_norm(f32[16,256], f32[256])", "--platform", "xla", "--seconds", "20", "--evals", "20", "--fresh"]
        self.hone(*arguments, env=self.with_plugin())
        compiled = self.written(folder)
        self.assertIn(len(compiled), range(configs + 1, 2 * configs + 1))
        self.hone(*arguments, env=self.with_plugin())
        again = self.written(folder)
        self.assertEqual({name: again.get(name) for name in compiled}, compiled)
        self.assertLessEqual(len(again), 2 * configs)

    @staticmethod
    def written(folder):
        return {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}

    def test_xla_competes_with_native_kernels_in_one_contest(self):
        kernels = self.kernels("rms_norm(f32[16,256], f32[256])")
        self.assertEqual({platform for _, platform in kernels}, {"native", "xla"})

    def test_without_a_plugin_native_kernels_compete_alone(self):
        env = {"HONE_PJRT_PLUGIN": "/nowhere/plugin.so"}
        self.hone("tune", "rms_norm(f32[16,256], f32[256])", "--seconds", "5", "--evals", "2", env=env)


if __name__ == "__main__":
    unittest.main()
