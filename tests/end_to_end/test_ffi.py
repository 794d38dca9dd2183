"""Libraries for tvm-ffi as kernels: built here with tvm-ffi's own headers, on its own library; and on fakes of a GPU."""

import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import BUILD, DATA, CommandTest
from test_pages import commands_of, files_of

ROOT = DATA.parent
FAKES = BUILD.resolve() / "tests" / "fakes"
TVM_FFI = ROOT / "build-python" / "cute-dsl" / "tvm_ffi"
NORM = "rms_norm(f32[4,256], f32[256])"
SIGNATURE = "rms_norm(x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-6 #any) -> y: T[..., dim] where T in f32"

HEAD = """
#include <cmath>
#include <cstdlib>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>
namespace ffi = tvm::ffi;
static void norm(ffi::TensorView x, ffi::TensorView w, double eps, ffi::TensorView y)
{
    const int64_t rows = x.size(0), dim = x.size(1);
    for (int64_t row = 0; row < rows; row++) {
        const float *from = (const float *)x.data_ptr() + row * dim, *by = (const float *)w.data_ptr();
        float *to = (float *)y.data_ptr() + row * dim, lanes[16] = {0};
        for (int64_t i = 0; i < dim; i++) lanes[i % 16] += from[i] * from[i];
        double sum = 0;
        for (float lane : lanes) sum += lane;
        const float factor = (float)(1 / std::sqrt(sum / (double)dim + eps));
        for (int64_t i = 0; i < dim; i++) to[i] = from[i] * factor * by[i];
    }
}
static ffi::Tensor make(ffi::Tensor like, DLDataType type, ffi::ShapeView shape)
{
    return ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, shape, type, like.device());
}
"""

RIGHT = HEAD + """
void rms_norm(ffi::TensorView x, ffi::TensorView w, ffi::TensorView y, double eps)
{
    norm(x, w, eps, y);
}
ffi::Tensor returning(ffi::Tensor x, ffi::Tensor w, double eps)
{
    ffi::Tensor y = make(x, x.dtype(), x.shape());
    norm(x, w, eps, y);
    return y;
}
ffi::Array<ffi::Tensor> listing(ffi::Tensor x, ffi::Tensor w, double eps)
{
    return {returning(x, w, eps)};
}
void everything(ffi::Tensor x, ffi::Tensor w, ffi::Optional<ffi::Tensor> bias, ffi::String mode, bool fast,
                ffi::Array<int64_t> sizes, ffi::Shape shape, ffi::TensorView workspace, double eps, ffi::Tensor y)
{
    static const int64_t before = x.use_count();
    if (x.use_count() != before) TVM_FFI_THROW(RuntimeError) << "x has " << x.use_count() << " references, not " << before;
    if (bias.has_value() || mode != "row by row" || !fast) TVM_FFI_THROW(ValueError) << "another bias, mode or flag";
    if (sizes.size() != 2 || sizes[1] != 256 || shape.size() != 2 || shape[0] != 4) TVM_FFI_THROW(ValueError) << "other sizes";
    if (workspace.size(0) != 1024) TVM_FFI_THROW(ValueError) << "another workspace";
    static_cast<char *>(workspace.data_ptr())[1023] = 1;
    norm(x, w, eps, y);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(rms_norm, rms_norm);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(returning, returning);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(listing, listing);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(everything, everything);
"""

WRONG = HEAD + """
void throwing(ffi::TensorView, ffi::TensorView, ffi::TensorView, double) { TVM_FFI_THROW(ValueError) << "no such norm"; }
int64_t answering(ffi::TensorView x, ffi::TensorView w, ffi::TensorView y, double eps)
{
    norm(x, w, eps, y);
    return 7;
}
ffi::Tensor doubling(ffi::Tensor x, ffi::Tensor, double) { return make(x, DLDataType{kDLFloat, 64, 1}, x.shape()); }
ffi::Tensor shaping(ffi::Tensor x, ffi::Tensor, double) { return make(x, x.dtype(), ffi::ShapeView({4, 8})); }
ffi::String speaking(ffi::Tensor, ffi::Tensor, double) { return "a text that is longer than seven bytes"; }
void keeping(ffi::Tensor x, ffi::Tensor w, ffi::Tensor y, double eps)
{
    static ffi::Optional<ffi::Tensor> kept;
    kept = x;
    norm(x, w, eps, y);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(throwing, throwing);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(answering, answering);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(doubling, doubling);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(shaping, shaping);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(speaking, speaking);
ffi::Tensor hoarding(ffi::Tensor x, ffi::Tensor w, double eps)
{
    static ffi::Optional<ffi::Tensor> kept;
    ffi::Tensor y = make(x, x.dtype(), x.shape());
    norm(x, w, eps, y);
    kept = make(x, x.dtype(), ffi::ShapeView({1}));
    return y;
}
ffi::Tensor elsewhere(ffi::Tensor x, ffi::Tensor, double)
{
    return ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), DLDevice{kDLCPU, 0});
}
ffi::Tensor abroad(ffi::Tensor x, ffi::Tensor, double)
{
    return ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), DLDevice{kDLROCM, 1});
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(keeping, keeping);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(hoarding, hoarding);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(elsewhere, elsewhere);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(abroad, abroad);
"""

# The same in C: what surrounds it is wrong.
IN_C = """
#include <math.h>
#include <stdint.h>
struct value { int32_t kind; uint32_t size; union { void *pointer; double number; }; };
struct tensor { void *data; int32_t device[2], rank; uint8_t dtype[4]; int64_t *shape; };
static struct tensor *of(const struct value *v) { return (struct tensor *)((char *)v->pointer + (v->kind == 70 ? 24 : 0)); }
int __tvm_ffi_rms_norm(void *self, const struct value *given, int32_t count, struct value *result)
{
    const float *x = of(&given[0])->data, *w = of(&given[1])->data;
    float *y = of(&given[2])->data;
    for (int64_t row = 0; row < of(&given[0])->shape[0]; row++) {
        const int64_t dim = of(&given[1])->shape[0];
        double sum = 0;
        for (int64_t i = 0; i < dim; i++) sum += (double)x[row * dim + i] * x[row * dim + i];
        for (int64_t i = 0; i < dim; i++) y[row * dim + i] = (float)(x[row * dim + i] / sqrt(sum / (double)dim + given[3].number) * w[i]);
    }
    return AROUND;
}
"""
THREADS = """
#include <pthread.h>
#include <unistd.h>
static void *wait_long(void *ctx) { for (volatile int i = 0; ; i++) if (WAIT) usleep(WAIT); return ctx; }
__attribute__((constructor)) static void start(void) { pthread_t thread; pthread_create(&thread, NULL, wait_long, NULL); }
"""

CRASHING = """
#include <stdlib.h>
__attribute__((constructor)) static void crash(void) { abort(); }
int __tvm_ffi_rms_norm(void) { return 0; }
"""


def compile_library(folder, name, text, language="c++"):
    """With what the package says of its headers and its library."""
    source, library = folder / f"{name}.cc", folder / f"{name}.so"
    source.write_text(text)
    options = ["-std=c++17", f"-I{TVM_FFI}/include", f"-L{TVM_FFI}/lib", "-ltvm_ffi"] if language == "c++" else []
    subprocess.run(["c++", "-x", language, "-O3", "-fPIC", "-shared", str(source), "-o", str(library), *options], check=True, timeout=500)
    return library


class Ffi(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.built = pathlib.Path(tempfile.mkdtemp(prefix="hone-ffi-"))
        cls.addClassCleanup(shutil.rmtree, cls.built, ignore_errors=True)
        if not TVM_FFI.exists():
            raise AssertionError(f"{TVM_FFI} is missing: run scripts/setup python")
        cls.right = compile_library(cls.built, "right", RIGHT)
        cls.wrong = compile_library(cls.built, "wrong", WRONG)

    def real(self, **changes):
        return {"HONE_TVM_FFI": str(TVM_FFI / "lib" / "libtvm_ffi.so"), "HONE_PACK_PATH": str(self.folder / "pack"), **changes}

    def pack(self, library, *kernels, **changes):
        """A pack with a kernel of rms_norm for each (entry, arguments, further fields); its name is the entry."""
        folder = self.folder / "pack"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(library, folder / "library.so")
        digest = hashlib.sha256(library.read_bytes()).hexdigest()
        rows = [{"algorithm": "rms_norm", "name": entry, "platform": "ffi", "backend": "cpu", "signature": SIGNATURE, "file": "library.so",
                 "sha256": digest, "entry": entry, "arguments": arguments, **fields, **changes} for entry, arguments, fields in kernels]
        (folder / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "pack", "kernels": rows}))
        return folder

    def tune(self, kernel, env=None, call=NORM):
        return self.hone("tune", call, "--kernel", kernel, "--seconds", "20", "--evals", "1", "--fresh", env=env or self.real(), code=None)

    def assert_loses(self, kernel, says, env=None, call=NORM):
        answer = self.tune(kernel, env, call)
        self.assertNotEqual(answer.code, 0)
        self.assertIn(says, answer.out + answer.err)

    def test_a_library_competes_with_the_kernels_of_hone(self):
        self.pack(self.right, ("rms_norm", "x, weight, y, f64(eps)", {}))
        answer = self.hone("tune", NORM, "--seconds", "4", "--json", env=self.real()).json["entries"][0]
        rows = {row["kernel"]: row for row in answer["evidence"]["kernels"]}
        self.assertEqual(rows["rms_norm"]["platform"], "ffi")
        self.assertGreater(rows["rms_norm"]["tried"], 0)
        self.assertGreater(rows["rms_norm"]["time_ns"], 0)
        self.assertGreater(rows["portable"]["time_ns"], 0)

    def test_a_library_wins_alone_and_answers_the_next_call(self):
        self.pack(self.right, ("rms_norm", "x, weight, y, f64(eps)", {}))
        answer = self.tune("rms_norm")
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        answer = self.hone("explain", NORM, "--json", env=self.real()).json
        self.assertEqual((answer["kernel"], answer["platform"], answer["verified"]), ("rms_norm", "ffi", True))
        answer = self.hone("run", NORM, "--json", env=self.real()).json
        self.assertEqual(answer["kernel"], "rms_norm")

    def test_results_that_are_returned_are_taken(self):
        self.pack(self.right, ("returning", "x, weight, f64(eps) -> y", {}), ("listing", "x, weight, f64(eps) -> y", {}))
        answer = self.tune("returning")
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        self.assert_loses("listing", "returns a list, expected a tensor")

    def test_every_kind_of_argument_arrives_and_references_stay_as_they_were(self):
        self.pack(self.right, ("everything", "x, weight, none, text('row by row'), bool(dim > 4), [1, dim], [4, dim], scratch, f64(eps), y",
                               {"scratch": "4 * dim"}))
        answer = self.hone("tune", NORM, "--kernel", "everything", "--seconds", "4", env=self.real(), code=None)
        self.assertEqual(answer.code, 0, answer.out + answer.err)

    def test_a_tensor_is_passed_in_the_shape_that_the_function_takes(self):
        call = "rms_norm(f32[2,3,256], f32[256])"
        rows = "view(x, x.size / dim, dim), weight, view(y, x.size / dim, dim), f64(eps)"
        self.pack(self.right, ("rms_norm", rows, {}))
        answer = self.tune("rms_norm", call=call)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        self.pack(self.right, ("rms_norm", rows.replace("x.size / dim", "4"), {}))
        self.assert_loses("rms_norm", "its dims make 1024 elements, and it has 1536", call=call)

    def test_what_goes_wrong_is_told_in_the_librarys_words_and_loses_alone(self):
        given, returned = "x, weight, y, f64(eps)", "x, weight, f64(eps) -> y"
        kernels = {"throwing": (given, "ValueError: no such norm"), "answering": (given, "returns an integer, expected nothing"),
                   "doubling": (returned, "returns f64[4,256], expected f32[4,256]"), "shaping": (returned, "returns f32[4,8]"),
                   "speaking": (returned, "expected a tensor"), "keeping": (given, "keeps 1 references to argument 0"),
                   "hoarding": (returned, "keeps 1 tensors"), "abroad": (returned, "hone makes tensors on the host"),
                   "absent": (given, "no function __tvm_ffi_absent")}
        self.pack(self.wrong, *((entry, arguments, {}) for entry, (arguments, _) in kernels.items()))
        for entry, (_, says) in kernels.items():
            self.assert_loses(entry, says)
        answer = self.hone("tune", NORM, "--seconds", "3", "--evals", "30", "--fresh", "--json", env=self.real()).json["entries"][0]
        self.assertNotIn(answer["kernel"], kernels)

    def test_a_wrong_count_or_type_of_arguments_loses_with_tvm_ffis_words(self):
        self.pack(self.right, ("rms_norm", "x, weight, y", {}))
        self.assert_loses("rms_norm", "TypeError")
        self.pack(self.right, ("rms_norm", "x, weight, y, text('much')", {}))
        self.assert_loses("rms_norm", "TypeError")

    def test_a_library_that_crashes_when_it_is_loaded_is_put_aside(self):
        library = compile_library(self.folder, "crashing", CRASHING, "c")
        folder = self.pack(library, ("rms_norm", "x, weight, y, f64(eps)", {}))
        self.hone("pack", "check", str(folder), env=self.real(HONE_PACK_PATH=""))
        self.hone("pack", "check", "--run", str(folder), env=self.real(HONE_PACK_PATH=""), code=1)
        answer = self.hone("tune", NORM, "--seconds", "2", "--evals", "20", "--fresh", "--json", env=self.real()).json["entries"][0]
        self.assertNotEqual(answer["kernel"], "rms_norm")

    def load_of(self, library):
        """What hone says of a library of rms_norm when it is alone."""
        self.pack(library, ("rms_norm", "x, weight, y, f64(eps)", {}))
        answer = self.tune("rms_norm")
        self.assertNotEqual(answer.code, 0)
        return answer.out + answer.err

    def compile_c(self, name, text, *options):
        source, library = self.folder / f"{name}.c", self.folder / f"{name}.so"
        source.write_text(text)
        subprocess.run(["cc", "-O1", "-fPIC", "-shared", str(source), "-o", str(library), *options, "-lm"], check=True, timeout=100)
        return library

    def test_libraries_that_cannot_be_loaded_here_lose_with_the_loaders_words(self):
        self.compile_c("none", "int nobody(void) { return 0; }", f"-Wl,-soname,libnobody_has_this.so")
        needing = self.compile_c("needing", "int nobody(void);" + IN_C.replace("AROUND", "nobody()"), str(self.folder / "none.so"))
        self.assertIn("libnobody_has_this.so", self.load_of(needing))
        later = self.compile_c("later", "int TVMFFIOfALaterVersion(void);" + IN_C.replace("AROUND", "TVMFFIOfALaterVersion()"))
        self.assertIn("TVMFFIOfALaterVersion", self.load_of(later))
        foreign = bytearray(self.compile_c("foreign", IN_C.replace("AROUND", "0")).read_bytes())
        foreign[18] = 243  # RISC-V
        (self.folder / "foreign.so").write_bytes(foreign)
        self.assertIn("is for another machine", self.load_of(self.folder / "foreign.so"))
        (self.folder / "foreign.so").write_bytes(b"no library")
        self.assertIn("not a 64-bit shared library", self.load_of(self.folder / "foreign.so"))

    def test_another_version_of_tvm_ffi_is_named_with_the_one_that_is_known(self):
        later = self.compile_c("libtvm_ffi", "#include <stdint.h>\nvoid TVMFFIGetVersion(uint32_t *out) { out[0] = 0; out[1] = 2; out[2] = 3; }")
        self.pack(self.right, ("rms_norm", "x, weight, y, f64(eps)", {}))
        self.assert_loses("rms_norm", "is version 0.2.3: hone knows version 0.1 of apache-tvm-ffi", env=self.real(HONE_TVM_FFI=str(later)))

    def test_a_function_that_fails_without_a_word_loses_and_so_does_a_library_whose_thread_runs_on(self):
        silent = self.compile_c("silent", IN_C.replace("AROUND", "-1"))
        self.assertIn("failed without a word", self.load_of(silent))
        running = self.compile_c("running", THREADS.replace("WAIT", "0") + IN_C.replace("AROUND", "0"), "-pthread")
        self.assertIn("thread", self.load_of(running))
        sleeping = self.compile_c("sleeping", THREADS.replace("WAIT", "100000") + IN_C.replace("AROUND", "0"), "-pthread")  # as a pool's
        self.pack(sleeping, ("rms_norm", "x, weight, y, f64(eps)", {}))
        self.assertEqual(self.tune("rms_norm").code, 0)

    def test_a_limit_that_no_clock_has_is_a_long_one(self):
        self.hone("tune", NORM, "--kernel", "portable", "--seconds", "1e300", "--evals", "1", "--fresh")

    def test_without_tvm_ffi_its_package_is_named_and_nothing_else(self):
        self.pack(self.right, ("rms_norm", "x, weight, y, f64(eps)", {}))
        self.assert_loses("rms_norm", "install PyPI's apache-tvm-ffi", env=self.real(HONE_TVM_FFI="/nowhere/libtvm_ffi.so"))

    def test_packs_that_say_what_ffi_does_not_have_are_refused(self):
        for says, fields in (("block: a kernel of ffi has none", {"block": "64"}), ("entry: is missing", {"entry": ""}),
                             ("backend: a kernel of ffi", {"backend": "any"}), ("facts: platform ffi", {"facts": {"stream": "argument"}}),
                             ("1 to 8 dims", {"arguments": "view(x, 1, 1, 1, 1, 1, 1, 1, 1, 1), weight, y"}),
                             ("',' and dims", {"arguments": "view(x), weight, y"}),
                             ("is not a tensor of the call", {"arguments": "x, wait, y"})):
            folder = self.pack(self.right, ("rms_norm", "x, weight, y, f64(eps)", fields))
            answer = self.hone("pack", "check", str(folder), env=self.real(HONE_PACK_PATH=""), code=1)
            self.assertIn(says, answer.out + answer.err)

    def test_a_pack_is_begun_from_what_a_library_says_of_itself(self):
        library = compile_library(self.folder, "norms", "#define TVM_FFI_DLL_EXPORT_INCLUDE_METADATA 1\n" + RIGHT)
        folder, env = self.folder / "begun", self.real(HONE_PACK_PATH="")
        self.hone("pack", "new", "--from", str(library), "-o", str(folder), env=env)
        pack = json.loads((folder / "pack.json").read_text())
        rows = {row["name"]: row for row in pack["kernels"]}
        self.assertEqual(rows["rms_norm"]["arguments"], "x, weight, y, f64(eps)")
        self.assertEqual(rows["returning"]["arguments"], "x0, x1, f64(a0) -> y")
        self.assertEqual(rows["everything"]["arguments"], "x0, x1, none, text(''), bool(a0), [1], [1], x2, f64(a1), y")
        self.hone("pack", "check", "--run", str(folder), env=env)
        answer = self.hone("tune", NORM, "--kernel", "rms_norm", "--seconds", "20", "--evals", "1", "--fresh",
                           env=self.real(HONE_PACK_PATH=str(folder)), code=None)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        self.assertIn("is there already", self.hone("pack", "new", "--from", str(library), "-o", str(folder), env=env, code=1).err)

    def test_a_pack_is_begun_from_names_alone_where_a_library_says_nothing_more(self):
        folder, env = self.folder / "begun", self.real(HONE_PACK_PATH="", HONE_TVM_FFI="/nowhere/libtvm_ffi.so")
        self.hone("pack", "new", "--from", str(self.right), "-o", str(folder), env=env)
        rows = {row["name"]: row["arguments"] for row in json.loads((folder / "pack.json").read_text())["kernels"]}
        self.assertEqual(rows["rms_norm"], "x, weight, y, f64(eps)")
        self.assertEqual(rows["listing"], "x0, x1, y")
        self.write("text.so", "no library")
        for path, says in ((self.folder / "text.so", "is not a 64-bit shared library"), (BUILD / "libhone.so.0", "exports no function whose name")):
            answer = self.hone("pack", "new", "--from", str(path), "-o", str(self.folder / "none"), env=env, code=1)
            self.assertIn(says, answer.err)
        self.assertFalse((self.folder / "none").exists())

    def test_a_pack_is_begun_from_a_library_of_many_functions_and_what_is_left_out_is_said(self):
        env = self.real(HONE_PACK_PATH="", HONE_TVM_FFI="/nowhere/libtvm_ffi.so")
        for count, says in ((100, ""), (1030, "6 more functions")):
            library = self.compile_c(f"many{count}", "".join(f"int __tvm_ffi_f{i}(void) {{ return 0; }}\n" for i in range(count)))
            answer = self.hone("pack", "new", "--from", str(library), "-o", str(self.folder / f"begun{count}"), env=env)
            self.assertIn(says, answer.err)
            self.hone("pack", "check", str(self.folder / f"begun{count}"), env=env)

    def hub(self, root, *variants, digests="sha256"):
        """A folder in the layout of Hugging Face's kernels; digests: by which algorithm, None: none."""
        for name in variants:
            folder = root / "build" / name
            (folder / "norms").mkdir(parents=True)
            (folder / "__init__.py").write_text("from .norms import rms_norm\n")
            shutil.copy(self.right, folder / "norms" / "norms.abi3.so")
            files = {str(path.relative_to(folder)): base64.b64encode(hashlib.new(digests or "md5", path.read_bytes()).digest()).decode()
                     for path in folder.rglob("*") if path.is_file()}
            (folder / "metadata.json").write_text(json.dumps(
                {"id": "norms_cpu_1", "name": "norms", "version": 1, "license": "Apache-2.0", "python-depends": [],
                 "backend": {"type": "cpu"}, **({"digest": {"algorithm": digests, "files": files}} if digests else {})}))
            (folder / "__pycache__").mkdir()
            (folder / "__pycache__" / "x.pyc").write_bytes(b"left by an interpreter")
            (folder / "norms" / "y.pyc").write_bytes(b"left by an interpreter")
        return root

    def test_of_hugging_faces_variants_the_fitting_one_is_taken_and_each_is_explained(self):
        cpu = f"tvm-ffi01-cpu-{os.uname().machine}-linux"
        root = self.hub(self.folder / "kernels--someone--norms" / "snapshots" / ("ab" * 20), cpu, "tvm-ffi01-cu128-x86_64-linux",
                        "tvm-ffi02-cpu-x86_64-linux", "tvm-ffi01-cpu-riscv64-linux", "torch29-cxx11-cpu-x86_64-linux")
        env, new = self.real(HONE_PACK_PATH=""), ["pack", "new", "--from", str(root), "-o"]
        answer = self.hone(*new, str(self.folder / "begun"), env=env)
        for says in (f"{cpu} fits, and is taken", "there is no NVIDIA GPU here", "is for tvm-ffi 0.2", "is for riscv64",
                     "is a variant of torch", "2 files are as metadata.json says"):
            self.assertIn(says, answer.out)
        row = json.loads((self.folder / "begun" / "pack.json").read_text())["kernels"][0]
        self.assertEqual(row["producer"], {"kernel": "norms_cpu_1", "variant": cpu, "commit": "ab" * 20})
        self.hone("pack", "check", "--run", str(self.folder / "begun"), env=env)

        def lock(commit, name="someone/norms", *more):
            rows = [{"dependency": {"repo-id": name, "version": 1}, "lock": {"commit": commit}}, *more]
            return self.write("kernels.lock", json.dumps(rows))

        another = {"repo_id": "someone/else", "sha": "cd" * 20, "variants": {}}  # as other releases of kernels write it
        second = {"dependency": {"repo-id": "someone/norms", "version": 2}, "lock": {"commit": "cd" * 20}}
        for index, path in enumerate((lock("ab" * 20), lock("ab" * 20, "someone/norms", second),
                                      self.write("other.lock", json.dumps([another, {**another, "repo_id": "someone/norms", "sha": "ab" * 20}])))):
            answer = self.hone(*new, str(self.folder / f"locked{index}"), "--kernels-lock", path, env=env)
            self.assertIn("locks this commit of someone/norms", answer.out)
        answer = self.hone(*new, str(self.folder / "never"), "--kernels-lock", self.write("other.lock", json.dumps([another])), env=env, code=1)
        self.assertIn("does not lock someone/norms", answer.err)
        for commit, name, says in (("cd" * 20, "someone/norms", "locks commit cdcdcdcd"), ("ab" * 20, "a/b", "does not lock someone/norms"),
                                   ("ab\x1b[31m", "someone/norms", "at a commit that is not hexadecimal")):
            answer = self.hone(*new, str(self.folder / "never"), "--kernels-lock", lock(commit, name), env=env, code=1)
            self.assertIn(says, answer.err)
        variant = root / "build" / cpu
        (variant / "__init__.py").write_text("changed")
        self.assertIn("does not have the digest of", self.hone(*new, str(self.folder / "never"), env=env, code=1).err)
        (variant / "__init__.py").unlink()
        self.assertIn("lacks files", self.hone(*new, str(self.folder / "never"), env=env, code=1).err)
        (variant / "more.py").write_text("more")
        self.assertIn("does not list", self.hone(*new, str(self.folder / "never"), env=env, code=1).err)
        shutil.rmtree(variant)
        self.assertIn("no variant fits this machine", self.hone(*new, str(self.folder / "never"), env=env, code=1).err)
        self.assertFalse((self.folder / "never").exists())

    def test_a_pipe_in_a_folder_is_refused_and_nobody_waits_for_it(self):
        cpu, env = f"tvm-ffi01-cpu-{os.uname().machine}-linux", self.real(HONE_PACK_PATH="")
        root = self.hub(self.folder / "norms", cpu)
        new = ["pack", "new", "-o", str(self.folder / "never"), "--from"]
        for name in ("metadata.json", "norms/norms.abi3.so"):
            path = root / "build" / cpu / name
            before = path.read_bytes()
            path.unlink()
            os.mkfifo(path)
            self.assertIn(f"{name} is not a regular file", self.hone(*new, str(root), env=env, code=1).err)
            path.unlink()
            path.write_bytes(before)
        (root / "build" / cpu / "metadata.json").write_text("[]")
        self.assertIn("is not an object of JSON", self.hone(*new, str(root), env=env, code=1).err)
        os.mkfifo(self.folder / "pipe.so")
        self.assertIn("is not a regular file", self.hone(*new, str(self.folder / "pipe.so"), env=env, code=None).err)
        self.assertFalse((self.folder / "never").exists())

    def test_digests_by_sha512_are_compared_and_others_are_refused(self):
        cpu, env = f"tvm-ffi01-cpu-{os.uname().machine}-linux", self.real(HONE_PACK_PATH="")
        root = self.hub(self.folder / "norms", cpu, digests="sha512")
        answer = self.hone("pack", "new", "--from", str(root), "-o", str(self.folder / "begun"), env=env)
        self.assertIn("2 files are as metadata.json says", answer.out)
        (root / "build" / cpu / "__init__.py").write_text("changed")
        new = ["pack", "new", "--from", str(root), "-o", str(self.folder / "never")]
        self.assertIn("does not have the digest of", self.hone(*new, env=env, code=1).err)
        shutil.rmtree(root)
        self.hub(root, cpu, digests="sha384")
        self.assertIn("are by sha384, expected sha256 or sha512", self.hone(*new, env=env, code=1).err)

    def folder_pack(self, *backends, **changes):
        """A pack whose kernels name the folder norms in it."""
        folder = self.folder / "pack"
        folder.mkdir(exist_ok=True)
        rows = [{"algorithm": "rms_norm", "name": f"hub_{backend}", "platform": "ffi", "backend": backend, "signature": SIGNATURE,
                 "folder": "norms", "entry": "rms_norm", "arguments": "x, weight, y, f64(eps)", **changes} for backend in backends]
        (folder / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "pack", "kernels": rows}))
        return folder

    def test_a_pack_that_names_a_folder_takes_the_variant_that_fits_when_it_is_loaded(self):
        cpu, gpu = f"tvm-ffi01-cpu-{os.uname().machine}-linux", "tvm-ffi01-cu128-x86_64-linux"
        folder = self.folder_pack("cpu", "gpu")
        self.hub(folder / "norms", cpu, gpu, digests="sha512")
        answer = self.tune("hub_cpu")
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        self.assertEqual(self.hone("run", NORM, "--json", env=self.real()).json["kernel"], "hub_cpu")
        says = f"{cpu} fits; {gpu} is for the GPU"
        self.assertIn(says, self.hone("explain", NORM, env=self.real()).out)
        rows = {row["name"]: row for row in self.hone("explain", NORM, "--json", env=self.real()).json["kernels"]}
        self.assertEqual(rows["hub_cpu"]["variant"], says)
        rows = {row["name"]: row for algorithm in self.hone("list", "rms_norm", "--json", env=self.real()).json["algorithms"]
                for row in algorithm["kernels"]}
        self.assertEqual((rows["hub_cpu"]["variant"], rows["hub_cpu"]["runs_here"]), (says, True))
        self.assertIn(f"no variant of 'norms' fits this machine: {cpu} is for the CPU; {gpu} is for CUDA 12.8, and there is no NVIDIA GPU here",
                      rows["hub_gpu"]["reason"])
        # Nothing is wrong with the pack: it serves a machine with a GPU, too.
        checked = self.hone("pack", "check", str(folder), "--json", env=self.real(HONE_PACK_PATH="")).json["packs"][0]["kernels"]
        self.assertEqual([(row["refused"], row["runs_here"]) for row in checked], [(False, True), (False, False)])
        # Another machine's variant changes nothing here; another library for this one is another kernel.
        revision = checked[0]["revision"]
        self.hub(folder / "more", "tvm-ffi01-cpu-riscv64-linux")
        (folder / "more" / "build" / "tvm-ffi01-cpu-riscv64-linux").rename(folder / "norms" / "build" / "tvm-ffi01-cpu-riscv64-linux")
        self.assertEqual(self.revision_of(folder), revision)
        shutil.rmtree(folder / "norms")
        self.right, before = self.wrong, self.right
        self.addCleanup(setattr, self, "right", before)
        self.hub(folder / "norms", cpu)
        self.assertNotEqual(self.revision_of(folder), revision)

    def revision_of(self, folder):
        return self.hone("pack", "check", str(folder), "--json", env=self.real(HONE_PACK_PATH="")).json["packs"][0]["kernels"][0]["revision"]

    def test_what_is_wrong_with_a_folder_of_a_pack_is_said_and_its_kernel_loses_alone(self):
        cpu = f"tvm-ffi01-cpu-{os.uname().machine}-linux"
        folder = self.folder_pack("cpu")
        variant = self.hub(folder / "norms", cpu) / "build" / cpu
        outside = self.hub(self.folder / "outside", cpu)

        def says(**changes):
            self.folder_pack("cpu", **changes)
            answer = self.hone("pack", "check", str(folder), env=self.real(HONE_PACK_PATH=""), code=1)
            return answer.out + answer.err

        self.assertIn("there is no folder 'none'", says(folder="none"))
        self.assertIn("leaves the folder of the pack", says(folder="../outside"))
        self.assertIn("name one of them", says(file="norms.so", sha256="0" * 64))
        self.assertIn("is for libraries of tvm-ffi", says(platform="native"))
        (folder / "empty").mkdir()
        self.assertIn("'empty' has no variants", says(folder="empty"))
        library = variant / "norms" / "norms.abi3.so"
        library.unlink()
        library.symlink_to(outside / "build" / cpu / "norms" / "norms.abi3.so")
        self.assertIn("is a link that leaves the folder of the pack", says())
        library.unlink()
        library.write_bytes(b"another")
        self.assertIn("does not have the digest of", says())
        answer = self.hone("tune", NORM, "--seconds", "1", "--evals", "5", "--fresh", "--json", env=self.real()).json["entries"][0]
        self.assertNotEqual(answer["kernel"], "hub_cpu")
        metadata = json.loads((variant / "metadata.json").read_text())
        (variant / "metadata.json").write_text(json.dumps({name: value for name, value in metadata.items() if name != "digest"}))
        self.assertIn("has no digests", says())

    def test_a_folder_without_digests_is_taken_and_that_is_said(self):
        root = self.hub(self.folder / "norms", f"tvm-ffi01-cpu-{os.uname().machine}-linux", digests=None)
        answer = self.hone("pack", "new", "--from", str(root), "-o", str(self.folder / "begun"), env=self.real(HONE_PACK_PATH=""))
        self.assertIn("metadata.json has no digests: nothing tells whether", answer.out)
        row = json.loads((self.folder / "begun" / "pack.json").read_text())["kernels"][0]
        self.assertEqual(row["sha256"], hashlib.sha256(self.right.read_bytes()).hexdigest())

    def test_the_page_is_true(self):
        page = (ROOT / "docs" / "ffi.md").read_text()
        for path, text in files_of(page):
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        env = {**self.environment(self.real(HONE_PACK_PATH=None)), "TVM_FFI": str(TVM_FFI), "LIBHONE_FFI": str(BUILD.resolve() / "libhone_ffi.so"), "PATH": f"{BUILD.resolve()}:{os.environ['PATH']}"}
        printed = {}
        for command in commands_of(page):
            done = subprocess.run(command, shell=True, cwd=self.folder, env=env, text=True, capture_output=True, timeout=500)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
            printed[command.split()[1] if command.startswith("hone") else command.split()[0]] = done.stdout
        self.assertRegex(printed["tune"], r"(?m)^[* ] ffi_silu .* us|^[* ] ffi_silu .* ns")
        self.assertRegex(printed["tune"], r"(?m)^[* ] ffi_silu_new ")
        self.assertEqual(printed["./host"], "y[0] is 2.000, references as before\nValueError\n")


    @unittest.skipUnless(shutil.which("rustc") or os.environ.get("HONE_REQUIRE"), "there is no rustc (Debian's package rustc)")
    def test_a_program_in_rust_calls_hone(self):
        places = [str(TVM_FFI / "lib"), str(BUILD.resolve())]
        program = self.folder / "host"
        subprocess.run(["rustc", "-O", str(ROOT / "examples" / "tvm_ffi.rs"), "-o", str(program), *(word for place in places for word in ("-L", place)),
                        "-C", f"link-arg=-Wl,-rpath,{','.join(f'-rpath,{place}' for place in places).removeprefix('-rpath,')}"],
                       check=True, timeout=300, cwd=self.folder)
        done = subprocess.run([str(program)], env=self.environment(self.real(HONE_PACK_PATH=None)), text=True, capture_output=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (
            0, "y[0] is 2.000\nValueError: hone: rms_norm: weight is a tensor f32[4,256], expected T[dim]\n"), done.stderr)


# What TileLang 0.1.15 wrote for target "c".
TILELANG = """// tilelang target: {"kind":"c","tag":"","keys":["cpu"],"host":{"kind":"c","tag":"","keys":["cpu"]}}
#include <tl_templates/cpp/common.h>

#ifdef __cplusplus
extern "C"
#endif
int32_t main_kernel(float* W, float* X, float* Y, int32_t M, int32_t N, float eps);
#ifdef __cplusplus
extern "C"
#endif
float sqrtf(float);
#ifdef __cplusplus
extern "C"
#endif
int32_t main_kernel(float* W, float* X, float* Y, int32_t M, int32_t N, float eps) {
  float s[1];
  for (int32_t bx = 0; bx < M; ++bx) {
    s[0] = 0.000000e+00f;
    for (int32_t i = 0; i < N; ++i) {
      s[0] = (s[0] + (X[((((int64_t)bx) * ((int64_t)N)) + ((int64_t)i))] * X[((((int64_t)bx) * ((int64_t)N)) + ((int64_t)i))]));
    }
    for (int32_t i_1 = 0; i_1 < N; ++i_1) {
      Y[((((int64_t)bx) * ((int64_t)N)) + ((int64_t)i_1))] = ((X[((((int64_t)bx) * ((int64_t)N)) + ((int64_t)i_1))] * (1.000000e+00f / sqrtf(((s[0] / ((float)N)) + eps)))) * W[((int64_t)i_1)]);
    }
  }
  return 0;
}
"""


class TileLang(CommandTest):
    def pack(self, **changes):
        folder = self.folder / "pack"
        (folder / "tl_templates" / "cpp").mkdir(parents=True, exist_ok=True)
        (folder / "norm.c").write_text(TILELANG)
        (folder / "norm.so").write_bytes(b"a library")
        (folder / "tl_templates" / "cpp" / "common.h").write_text("#include <stdint.h>\n")
        def digest(name):
            return hashlib.sha256((folder / name).read_bytes()).hexdigest()

        header, file = "tl_templates/cpp/common.h", changes.get("file", "norm.c")
        row = {"algorithm": "rms_norm", "name": "norm", "platform": "tilelang", "backend": "cpu", "signature": SIGNATURE, "file": file,
               "sha256": digest(file), "files": [{"file": header, "sha256": digest(header)}], "entry": "main_kernel",
               "arguments": "weight, x, y, i32(x.size / dim), i32(dim), f32(eps)", **changes}
        (folder / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "pack", "kernels": [row]}))
        return folder

    def test_what_tilelang_wrote_for_the_cpu_is_tuned_and_answers(self):
        env = {"HONE_PACK_PATH": str(self.pack())}
        answer = self.hone("tune", NORM, "--kernel", "norm", "--seconds", "20", "--evals", "1", "--fresh", env=env, code=None)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        answer = self.hone("run", NORM, "--json", env=env).json
        self.assertEqual((answer["kernel"], answer["platform"]), ("norm", "tilelang"))

    def test_what_it_makes_for_gpus_and_its_libraries_are_refused_with_what_to_do(self):
        for changes, says in (({"backend": "gpu"}, "is one for platform cuda"), ({"file": "norm.so"}, "name the C that TileLang writes"),
                              ({"entry": "no name"}, "is not the name of a C function")):
            answer = self.hone("pack", "check", str(self.pack(**changes)), code=1)
            self.assertIn(says, answer.out + answer.err)


class Gpu(CommandTest):
    """On the fake driver, whose memory is the host's, and the fake tvm-ffi."""

    def gpu(self, **changes):
        return {"HONE_CUDA_DRIVER": str(FAKES / "fake_cuda.so"), "HONE_NVRTC": str(FAKES / "fake_nvrtc.so"),
                "HONE_CUBLASLT": "/nowhere/libcublasLt.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"), "FAKE_CUDA_ON_HOST": "1",
                "HONE_TVM_FFI": str(FAKES / "fake_tvm_ffi.so"), "HONE_PACK_PATH": str(self.folder / "pack"), **changes}

    def real_pack(self, library, *entries):
        folder = self.folder / "pack"
        folder.mkdir(exist_ok=True)
        shutil.copy(library, folder / "library.so")
        kernels = [{"algorithm": "rms_norm", "name": entry, "platform": "ffi", "backend": "gpu", "signature": SIGNATURE, "file": "library.so",
                    "sha256": hashlib.sha256(library.read_bytes()).hexdigest(), "entry": entry, "arguments": "x, weight, f64(eps) -> y"}
                   for entry in entries]
        (folder / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "pack", "kernels": kernels}))

    def test_on_a_gpu_results_are_made_in_the_order_of_the_stream_and_taken(self):
        env = self.gpu(HONE_TVM_FFI=str(TVM_FFI / "lib" / "libtvm_ffi.so"))
        tune = ["tune", NORM + " @cuda:0", "--seconds", "20", "--evals", "1", "--fresh", "--kernel"]
        self.real_pack(compile_library(self.folder, "right", RIGHT), "returning")
        answer = self.hone(*tune, "returning", env=env, code=None)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        self.real_pack(compile_library(self.folder, "wrong", WRONG), "hoarding", "elsewhere", "shaping", "abroad")
        for entry, says in (("hoarding", "keeps 1 tensors"), ("elsewhere", "returns a tensor on device 1:0"), ("shaping", "returns f32[4,8]"),
                            ("abroad", "asked for 2 on device 10:1")):
            answer = self.hone(*tune, entry, env=env, code=None)
            self.assertNotEqual(answer.code, 0)
            self.assertIn(says, answer.out + answer.err)

    def test_the_variant_for_the_driver_and_the_gpu_is_taken(self):
        machine = os.uname().machine  # the fake GPU is of capability 9.0, its driver of CUDA 13.0
        archs = {"cpu": None, "cu126": ["8.0", "9.0"], "cu128": ["8.0", "8.6+PTX"], "cu129": ["9.0a"], "cu130": ["8.0", "9.2", "10.0a"],
                 "cu131": ["9.0"]}
        for name, named in archs.items():
            folder = self.folder / "norms" / "build" / f"tvm-ffi01-{name}-{machine}-linux"
            folder.mkdir(parents=True)
            shutil.copy(FAKES / "fake_export.so", folder / "norms.so")
            (folder / "metadata.json").write_text(json.dumps({"id": "norms", "backend": {"type": "cuda", "archs": named or []}}))
        env = self.gpu(HONE_PACK_PATH="")
        for taken in ("cu129", "cu128", "cu126", "cpu"):
            answer = self.hone("pack", "new", "--from", str(self.folder / "norms"), "-o", str(self.folder / taken), env=env)
            for says in (f"{taken}-{machine}-linux fits, and is taken", "is for CUDA 13.1, and the driver here is of CUDA 13.0",
                         "has code for compute capability 8.0, 9.2, 10.0a, and the GPU here is of 9.0"):
                self.assertIn(says, answer.out)
            shutil.rmtree(self.folder / "norms" / "build" / f"tvm-ffi01-{taken}-{machine}-linux")

    def test_a_pack_of_a_folder_runs_the_variant_for_the_gpu_that_is_here(self):
        machine, folder = os.uname().machine, self.folder / "pack"
        library = (FAKES / "fake_export.so").read_bytes()
        for name in ("cpu", "cu128", "cu131"):
            variant = folder / "norms" / "build" / f"tvm-ffi01-{name}-{machine}-linux"
            variant.mkdir(parents=True)
            (variant / "norms.so").write_bytes(library)
            files = {"norms.so": base64.b64encode(hashlib.sha512(library).digest()).decode()}
            (variant / "metadata.json").write_text(json.dumps({"id": "norms", "backend": {"type": "cuda", "archs": ["8.0", "9.0"]},
                                                               "digest": {"algorithm": "sha512", "files": files}}))
        kernel = {"algorithm": "rms_norm", "name": "exported", "platform": "ffi", "backend": "gpu", "signature": SIGNATURE,
                  "folder": "norms", "entry": "rms_norm", "arguments": ["x", "weight", "y", "i32(dim)", "f64(eps)"]}
        (folder / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "pack", "kernels": [kernel]}))
        answer = self.hone("tune", NORM + " @cuda:0", "--kernel", "exported", "--seconds", "20", "--evals", "1", "--fresh", env=self.gpu(),
                           code=None)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        self.assertIn(f"tvm-ffi01-cu128-{machine}-linux fits; tvm-ffi01-cpu-{machine}-linux is for the CPU; "
                      f"tvm-ffi01-cu131-{machine}-linux is for CUDA 13.1", self.hone("explain", NORM + " @cuda:0", env=self.gpu()).out)

    def test_on_a_gpu_the_stream_stands_in_the_environment(self):
        folder = self.folder / "pack"
        folder.mkdir()
        shutil.copy(FAKES / "fake_export.so", folder / "export.so")
        kernel = {"algorithm": "rms_norm", "name": "exported", "platform": "ffi", "backend": "gpu", "signature": SIGNATURE,
                  "file": "export.so", "sha256": hashlib.sha256((folder / "export.so").read_bytes()).hexdigest(), "entry": "rms_norm",
                  "arguments": ["x", "weight", "y", "i32(dim)", "f64(eps)"]}
        (folder / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "pack", "kernels": [kernel]}))
        answer = self.hone("tune", NORM + " @cuda:0", "--kernel", "exported", "--seconds", "20", "--evals", "1", "--fresh", env=self.gpu(),
                           code=None)
        self.assertEqual(answer.code, 0, answer.out + answer.err)
        lines = (self.folder / "log").read_text().splitlines()
        calls = [line for line in lines if line.startswith("call rms_norm 5")]
        self.assertRegex(calls[0], r"2.32@2:0\[4/256,256/1\]\+0 2.32@2:0\[256/1\]\+0 2.32@2:0\[4/256,256/1\]\+0 int 256 float 1e-06$")
        self.assertEqual(len([line for line in lines if line.startswith("environment 2:0")]), 2 * len(calls))
        # The GPU times it: work is queued behind a kernel that waits.
        self.assertTrue([line for line in lines if line.startswith("launch hone_wait")])


if __name__ == "__main__":
    unittest.main()
