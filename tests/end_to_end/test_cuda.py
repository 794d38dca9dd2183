"""A call on a GPU, from the command, on the fake driver and compiler."""

import json
import shutil
import unittest

from support import BUILD, CommandTest

FAKES = BUILD.resolve() / "tests" / "fakes"
CALL = "rms_norm(f32[4,256], f32[256]) @cuda:0"


class Cuda(CommandTest):
    def gpu(self, **changes):
        env = {"HONE_CUDA_DRIVER": str(FAKES / "fake_cuda.so"), "HONE_NVRTC": str(FAKES / "fake_nvrtc.so"),
               "HONE_CUBLASLT": "/nowhere/libcublasLt.so.13",
               "FAKE_CUDA_LOG": str(self.folder / "log")}
        env.update(changes)
        return env

    def log(self, start):
        path = self.folder / "log"
        return [line for line in path.read_text().splitlines() if line.startswith(start)] if path.exists() else []

    def test_devices_shows_the_gpu(self):
        platforms = {row["platform"]: row for row in self.hone("devices", "--json", env=self.gpu()).json["platforms"]}
        self.assertTrue(platforms["cuda"]["available"])
        self.assertEqual([device["name"] for device in platforms["cuda"]["devices"]], ["Fake GPU"])

    def test_what_ejkernel_recorded_on_the_gpu_is_tuned_there(self):
        key = self.hone("key", CALL.split(" @")[0], "--json").json
        row = {"op": "rms_norm@v0", "key": key["key"], "spec": key["spec"], "count": 3}
        for device in ("Fake GPU|PJRT C API\ncuda 12090", "gpu|Fake GPU"):
            self.use_new_store()
            document = {"hone_record": 1, "device": device, "invocations": [row]}
            self.hone("record", "import", self.write("calls.json", json.dumps(document)))
            result = self.hone("tune", "--recorded", "--seconds", "1", "--evals", "4", "--json", code=None, env=self.gpu()).json
            rows = result["entries"] + result.get("failed", [])
            self.assertEqual([one["call"].split(" @")[-1] for one in rows], ["cuda:0"], result)
        other = {"hone_record": 1, "device": "Fake GPU 2|PJRT", "invocations": [row]}
        self.use_new_store()
        self.hone("record", "import", self.write("calls.json", json.dumps(other)))
        self.assertEqual(self.hone("tune", "--recorded", "--json", env=self.gpu()).json["entries"], [])

    def lines(self, env):
        rows = self.hone("devices", "--json", env=env).json["platforms"]
        return {row["platform"]: row["plugins"] for row in rows}

    def test_devices_shows_compilers_and_the_packages_that_bring_them(self):
        packages = self.folder / ".local" / "lib" / "python3.12" / "site-packages"
        cutlass = self.folder / "cutlass" / "include"
        for folder in (packages / "triton-3.6.0.dist-info", packages / "apache_tvm_ffi-0.1.15.dist-info", cutlass / "cute",
                       cutlass / "cutlass"):
            folder.mkdir(parents=True)
        (cutlass / "cute" / "tensor.hpp").write_text("")
        (cutlass / "cutlass" / "version.h").write_text(
            "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n")
        gpu = self.gpu(VIRTUAL_ENV=None, HONE_CUTLASS_PATH=str(cutlass.parent))
        # Also without a driver: what is missing besides is not found out one by one.
        for env in (gpu, dict(gpu, HONE_CUDA_DRIVER="/nowhere/libcuda.so.1")):
            lines = self.lines(env)
            self.assertIn(f"sources: NVRTC 13.0, {FAKES / 'fake_nvrtc.so'}", lines["cuda"])
            self.assertIn(f"triton 3.6.0, {packages}", lines["triton"])
            self.assertIn(f"CUTLASS 4.2.1, {cutlass}", lines["cute"])
            self.assertIn(f"apache-tvm-ffi 0.1.15, {packages}", lines["cute"])
        shutil.rmtree(packages)
        lines = self.lines(dict(gpu, HONE_NVRTC="/nowhere/libnvrtc.so.13", HONE_CUTLASS_PATH=str(self.folder)))
        self.assertIn("nvidia-cuda-nvrtc", lines["cuda"])
        self.assertIn("nvidia-cutlass", lines["cute"])

    def test_devices_says_what_is_missing(self):
        env = self.gpu(HONE_CUDA_DRIVER="/nowhere/libcuda.so.1")
        platforms = {row["platform"]: row for row in self.hone("devices", "--json", env=env).json["platforms"]}
        self.assertFalse(platforms["cuda"]["available"])
        self.assertIn("needs an NVIDIA GPU and its driver", platforms["cuda"]["reason"])

    def platforms_of_doctor(self, **changes):
        checks = self.hone("doctor", "--json", code=None, env=self.gpu(**changes)).json["checks"]
        return next(row for row in checks if row["name"] == "platforms")

    def test_doctor_says_why_nobody_sees_what_disturbs_a_gpu(self):
        missing = self.platforms_of_doctor(HONE_NVML="/nowhere/libnvidia-ml.so.1")
        self.assertIn("on cuda:0 nobody sees what disturbs samples: /nowhere/libnvidia-ml.so.1", missing["detail"])
        self.assertIn("alone", missing["advice"])
        fake = str(FAKES / "fake_nvml.so")
        self.assertIn("is divided by MIG", self.platforms_of_doctor(HONE_NVML=fake, FAKE_NVML_MIG="1")["detail"])
        seen = self.platforms_of_doctor(HONE_NVML=fake)
        self.assertNotIn("nobody", seen["detail"])
        self.assertTrue(seen["ok"] and missing["ok"])

    def test_undecided_contests_beside_a_neighbour_name_it(self):
        env = self.gpu(HONE_NVML=str(FAKES / "fake_nvml.so"), FAKE_NVML_OTHER="90")
        answer = self.hone("tune", CALL, "--json", "--seconds", "2", "--evals", "4", env=env)
        evidence = answer.json["entries"][0]["evidence"]
        self.assertGreater(evidence["disturbed"], 0.5)
        if "undecided" in evidence:
            self.assertIn("disturbed by other processes on the device", evidence["undecided"])

    def test_a_call_on_the_cpu_does_not_wake_the_driver(self):
        env = self.gpu(HONE_CUDA_DRIVER=str(FAKES / "fake_cuda_broken.so"))
        self.hone("run", "rms_norm(f32[4,256], f32[256])", env=env)
        self.assertEqual(self.log("compile"), [])

    def test_tune_chooses_a_kernel_of_the_gpu_and_the_store_answers(self):
        self.hone("tune", CALL, "--seconds", "2", "--evals", "6", env=self.gpu())
        answer = self.hone("explain", CALL, "--json", env=self.gpu()).json
        self.assertEqual((answer["platform"], answer["source"], answer["verified"]), ("cuda", "store", True))
        self.assertTrue(self.log("launch rms_norm"))

    def test_launches_are_regimes_beside_warm_and_told_everywhere(self):
        gpu = self.gpu()
        for regime, words in (("graph", "in a graph that is replayed"), ("eager", "its launch and the wait for its end counted in")):
            told = self.hone("tune", CALL, "--regime", regime, "--seconds", "2", "--evals", "4", env=gpu).out
            self.assertIn(f"regime {regime}: times are of", told)
            self.assertIn(words, told)
        rows = [row["evidence"]["regime"] for row in self.hone("store", "get", CALL, "--json", env=gpu).lines]
        self.assertEqual(sorted(rows), ["eager", "graph"])
        self.assertIn("tune, eager", self.hone("store", "list", env=gpu).out)
        for regime in ("graph", "eager"):
            self.assertIn(regime, self.hone("explain", CALL, env=dict(gpu, HONE_REGIME=regime)).out)
            answer = self.hone("explain", CALL, "--json", env=dict(gpu, HONE_REGIME=regime)).json
            self.assertEqual((answer["source"], answer["evidence"]["regime"]), ("store", regime))

    def test_a_regime_of_launches_is_refused_where_there_are_none(self):
        call = CALL.split(" @")[0]
        self.refused("tune", call, "--regime", "eager", code=None, says="has no regime eager: a run has ended when it returns")
        self.refused("tune", call, "--regime", "tepid", says="expected warm, cold, graph or eager")
        self.refused("tune", call, "--cold", "--regime", "graph", says="give one of them")
        self.refused("explain", call, env={"HONE_REGIME": "tepid"}, code=None, says="HONE_REGIME is 'tepid'")

    def test_a_second_tune_compiles_nothing(self):
        arguments = ["tune", CALL, "--seconds", "2", "--evals", "1", "--fresh"]
        self.hone(*arguments, env=self.gpu())
        compiled = len(self.log("compile"))
        self.assertGreater(compiled, 0)
        self.hone(*arguments, env=self.gpu(), code=None)
        self.assertEqual(len(self.log("compile")), compiled)

    def test_a_product_in_half_precision_is_verified(self):
        call = "matmul(bf16[32,64], bf16[64,48]) @cuda:0"
        for kernel in ("cuda_tensor_core", "cuda_wgmma"):
            self.hone("tune", call, "--kernel", kernel, "--seconds", "2", "--evals", "2", "--fresh", env=self.gpu())
            answer = self.hone("explain", call, "--json", env=self.gpu()).json
            self.assertEqual((answer["kernel"], answer["verified"]), (kernel, True))
            self.hone("store", "remove", call, env=self.gpu())  # else it stays, where the next one is slower

    def test_attention_says_by_name_what_its_kernel_lacks(self):
        arrays = "bf16[1,64,8,128], bf16[1,64,2,128], bf16[1,64,2,128]"
        for given, words in (("sliding_window=4", "sliding_window is given"), ("logits_soft_cap=5.0", "logits_soft_cap is given")):
            said = self.hone("explain", f"flash_attention({arrays}, {given}) @cuda:0", "--all", env=self.gpu(), code=None)
            self.assertIn(f"{words}; this kernel knows none", said.out + said.err)

    def test_wgmma_is_for_its_own_chip_alone(self):
        call = "matmul(bf16[32,64], bf16[64,48]) @cuda:0"
        answer = self.hone("tune", call, "--kernel", "cuda_wgmma", "--seconds", "2", code=None, env=self.gpu(FAKE_CUDA_CAPABILITY="100"))
        self.assertNotEqual(answer.code, 0)
        self.assertIn("sm_90a", answer.out + answer.err)

    def test_without_a_contest_the_faster_of_hones_own_answers(self):
        for capability, kernel in (("90", "cuda_wgmma"), ("80", "cuda_tensor_core")):
            env = self.gpu(HONE_POLICY="heuristic", FAKE_CUDA_CAPABILITY=capability)
            answer = self.hone("run", "matmul(bf16[32,64], bf16[64,48]) @cuda:0", "--json", env=env).json
            self.assertEqual(answer["kernel"], kernel)

    def test_a_gpu_without_memory_is_told(self):
        answer = self.hone("tune", CALL, "--seconds", "2", env=self.gpu(FAKE_CUDA_MEMORY="20000"), code=None)
        self.assertNotEqual(answer.code, 0)
        self.assertIn("memory", answer.err)

    def test_run_places_its_inputs_in_the_gpus_memory(self):
        answer = self.hone("run", CALL, "--json", env=self.gpu(HONE_POLICY="heuristic")).json
        self.assertEqual((answer["platform"], answer["verified"]), ("cuda", True))

    def test_bench_measures_kernels_of_the_gpu(self):
        call = self.hone("bench", CALL, "--json", "--seconds", "0.2", env=self.gpu()).json["calls"][0]
        self.assertEqual({row["kernel"] for row in call["rows"]}, {"cuda"})
        self.assertTrue(all(row["time_ns"] > 0 for row in call["rows"]))

    def test_run_says_which_device_is_not_there(self):
        self.refused("run", CALL.replace("cuda:0", "cuda:7"), env=self.gpu(), code=None, says="device")


if __name__ == "__main__":
    unittest.main()
