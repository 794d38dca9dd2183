"""Exports of the CuTe DSL: a fake one on a fake tvm-ffi and the fake driver, and packs that are wrong."""

import hashlib
import json
import shutil
import unittest

from support import BUILD, DATA, CommandTest

FAKES = BUILD.resolve() / "tests" / "fakes"
MATMUL = "matmul(f32[8,16], f32[16,24]) @cuda:0"
NORM = "rms_norm(f32[4,256], f32[256]) @cuda:0"


class Cute(CommandTest):
    def gpu(self, **changes):
        env = {"HONE_CUDA_DRIVER": str(FAKES / "fake_cuda.so"), "HONE_NVRTC": str(FAKES / "fake_nvrtc.so"),
               "HONE_CUBLASLT": "/nowhere/libcublasLt.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"), "FAKE_CUDA_ON_HOST": "1",
               "HONE_TVM_FFI": str(FAKES / "fake_tvm_ffi.so"), "HONE_CUTE_DSL_RUNTIME": str(FAKES / "fake_tvm_ffi.so"),
               "HONE_PACK_PATH": str(self.folder / "pack")}
        env.update(changes)
        return env

    def pack(self, file=FAKES / "fake_export.so", name="export.so", **changes):
        """A pack of one export, of matmul where nothing else is said; None takes a field out."""
        folder = self.folder / "pack"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(file, folder / name)
        kernel = {"algorithm": "matmul", "name": "exported", "platform": "cute", "backend": "gpu", "priority": 90,
                  "signature": "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) "
                               "-> c: T[m, n] where T in f32",
                  "file": name, "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(), "entry": "matmul",
                  "arguments": ["a", "b", "c"], "condition": "not transpose_b", "facts": {"stream": "argument"}}
        kernel.update(changes)
        kernel = {field: value for field, value in kernel.items() if value is not None}
        (folder / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "pack", "kernels": [kernel]}))
        return folder

    def log(self, start):
        path = self.folder / "log"
        return [line for line in path.read_text().splitlines() if line.startswith(start)] if path.exists() else []

    def tune(self, call, env=None):
        return self.hone("tune", call, "--kernel", "exported", "--seconds", "20", "--evals", "1", "--fresh", env=env or self.gpu(),
                         code=None)

    def assert_loses(self, says, call=MATMUL, env=None):
        answer = self.tune(call, env)
        self.assertNotEqual(answer.code, 0)
        self.assertIn(says, answer.out + answer.err)

    def assert_refused_pack(self, says, **changes):
        folder = self.pack(**changes)
        answer = self.hone("pack", "check", str(folder), env=self.gpu(HONE_PACK_PATH=""), code=1)
        self.assertIn(says, answer.out + answer.err)

    def test_an_export_is_called_with_tensors_and_the_stream(self):
        self.pack()
        answer = self.tune(MATMUL)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        answer = self.hone("explain", MATMUL, "--json", env=self.gpu()).json
        self.assertEqual((answer["kernel"], answer["platform"], answer["verified"]), ("exported", "cute", True))
        calls = self.log("call matmul")
        tensors = "2.32@2:0[8/16,16/1]+0 2.32@2:0[16/24,24/1]+0 2.32@2:0[8/24,24/1]+0"
        self.assertIn(f"call matmul 4: {tensors} tag 4 ", calls[0])

    def test_a_bound_run_verifies_it_and_then_calls_it(self):
        self.pack()
        answer = self.hone("run", MATMUL, "--json", env=self.gpu(HONE_POLICY="heuristic")).json
        self.assertEqual(answer["kernel"], "exported")
        self.assertEqual(self.tune(MATMUL).code, 0)
        answer = self.hone("run", MATMUL, "--json", env=self.gpu(HONE_POLICY="heuristic")).json
        self.assertEqual((answer["kernel"], answer["verified"]), ("exported", True))

    def test_numbers_are_passed_and_the_stream_stands_in_the_environment(self):
        self.pack(algorithm="rms_norm", entry="rms_norm", facts={"stream": "environment"}, condition=None,
                  signature="rms_norm(x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-6) -> y: T[..., dim] where T in f32",
                  arguments=["x", "weight", "y", "i32(dim)", "f64(eps)"])
        answer = self.tune(NORM)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        self.assertRegex(self.log("call rms_norm 5")[0], r"\[256/1\]\+0 2.32@2:0\[4/256,256/1\]\+0 int 256 float 1e-06$")
        sets = self.log("environment 2:0")
        self.assertEqual(len(sets), 2 * len(self.log("call rms_norm")), "set before each call, and put back")

    def test_a_missing_library_is_told_with_the_package_that_brings_it(self):
        self.pack()
        for variable, package in (("HONE_TVM_FFI", "apache-tvm-ffi"), ("HONE_CUTE_DSL_RUNTIME", "nvidia-cutlass-dsl")):
            self.assert_loses(f"install PyPI's {package}", env=self.gpu(**{variable: "/nowhere/lib.so"}))

    def test_a_library_of_another_version_is_told(self):
        self.pack()
        self.assert_loses("no function TVMFFIEnvSetStream", env=self.gpu(HONE_TVM_FFI=str(FAKES / "fake_tvm_ffi_old.so")))

    def test_a_list_that_does_not_fit_the_export_loses_with_its_words(self):
        self.pack(arguments=["a", "b", "c", "c"])
        self.assert_loses("TypeError: Expects 4 parameters when calling: `matmul(a, b, c, stream)`")

    def test_an_entry_that_is_not_there_is_told(self):
        self.pack(entry="product")
        self.assert_loses("no function __tvm_ffi_product")

    def test_a_changed_file_is_not_opened(self):
        folder = self.pack()
        with open(folder / "export.so", "ab") as file:
            file.write(b"more")
        answer = self.hone("pack", "check", str(folder), env=self.gpu(HONE_PACK_PATH=""), code=1)
        self.assertIn("SHA-256", answer.out + answer.err)
        self.assertEqual(self.log("call"), [])

    def test_what_is_no_library_is_refused(self):
        self.assert_refused_pack("not a 64-bit shared library", file=__file__)
        cut = self.folder / "cut.so"
        cut.write_bytes((FAKES / "fake_export.so").read_bytes()[:32])
        self.assert_refused_pack("not a 64-bit shared library", file=cut)

    def test_fields_that_an_export_has_none_of_are_refused(self):
        for field, value in (("grid", "1"), ("block", "64"), ("shared", "8"), ("options", "-lineinfo"), ("scratch", "4")):
            self.assert_refused_pack(f"{field}: an export of the CuTe DSL has none", **{field: value})
        self.assert_refused_pack("entry: is missing", entry=None)
        self.assert_refused_pack("arguments: is missing", arguments=None)
        self.assert_refused_pack("backend", backend="cpu")

    def test_facts_say_how_the_stream_is_passed(self):
        self.assert_refused_pack("facts: must be", facts=None)
        self.assert_refused_pack("facts: must be", facts={"stream": 4})
        self.assert_refused_pack("neither argument nor environment", facts={"stream": "tape"})

    def test_a_cubin_is_compared_with_the_parameters_that_were_recorded(self):
        cubin = {"file": DATA / "unit/triton/data/vadd.cubin", "name": "vadd.cubin", "entry": "vadd",
                 "grid": "1", "block": "64", "arguments": ["a", "b", "c", "i32(m)", "i64(0)", "i64(0)"]}
        folder = self.pack(facts={"parameters": [8, 8, 8, 4, 8, 8]}, **cubin)
        self.hone("pack", "check", str(folder), env=self.gpu(HONE_PACK_PATH=""))
        self.assert_refused_pack("has 5, the binary takes 6", facts={"parameters": [8, 8, 8, 4, 8]}, **cubin)
        self.assert_refused_pack("parameters[3]: the binary's has 4 bytes", facts={"parameters": [8] * 6}, **cubin)
        self.assert_refused_pack("of a cubin are", facts={"stream": "argument"}, **cubin)

    def test_a_cubin_that_takes_structs_is_refused_and_exports_are_named(self):
        data = bytearray((DATA / "unit/triton/data/vadd.cubin").read_bytes())
        # The record of parameter 0: its index, its place, and its size in the upper bits.
        at = next(at for at in range(len(data)) if data[at:at + 4] == b"\x04\x17\x0c\x00" and
                  data[at + 8:at + 12] == bytes(4) and int.from_bytes(data[at + 12:at + 16], "little") >> 18 == 8)
        flags = int.from_bytes(data[at + 12:at + 16], "little") & (1 << 18) - 1
        data[at + 12:at + 16] = (flags | 24 << 18).to_bytes(4, "little")
        (self.folder / "structs.cubin").write_bytes(data)
        self.assert_refused_pack("argument 0 is a struct of 24 bytes in the function, which no list makes: export the kernel for "
                                 "tvm-ffi", file=self.folder / "structs.cubin", name="vadd.cubin", entry="vadd", grid="1",
                                 block="64", facts=None, arguments=["a", "b", "c", "i32(m)", "i64(0)", "i64(0)"])

    def test_exports_and_cubins_are_not_variants_of_one_kernel(self):
        folder = self.pack()
        shutil.copy(DATA / "unit/triton/data/vadd.cubin", folder / "b.cubin")
        pack = json.loads((folder / "pack.json").read_text())
        kernel = pack["kernels"][0]
        digest = hashlib.sha256((folder / "b.cubin").read_bytes()).hexdigest()
        kernel["variants"] = [{"config": {"tile": 1}, "file": kernel.pop("file"), "sha256": kernel.pop("sha256")},
                              {"config": {"tile": 2}, "file": "b.cubin", "sha256": digest}]
        (folder / "pack.json").write_text(json.dumps(pack))
        answer = self.hone("pack", "check", str(folder), env=self.gpu(HONE_PACK_PATH=""), code=1)
        self.assertIn("whose first variant is an export", answer.out + answer.err)


if __name__ == "__main__":
    unittest.main()
