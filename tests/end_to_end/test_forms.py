"""hone offline: programs that the real JAX lowers here, the same distinct operations from every form of each."""

import os
import pathlib
import subprocess
import sys
import tempfile

from support import DATA, CommandTest

PACKAGES = DATA.parent / "build-python"  # scripts/setup installs jax there
RMS_NORM = "rms_norm(f32[8,64], f32[64])"
SOFTMAX = "softmax(f32[8,64])"
UP, DOWN = "matmul(f32[8,64], f32[64,128])", "matmul(f32[8,128], f32[128,64])"

# How often each program makes which call.
PROGRAMS = {
    "block": {RMS_NORM: 1, UP: 1, DOWN: 1, SOFTMAX: 1},
    "loops": {RMS_NORM: 5 + 7, UP: 5, DOWN: 5, SOFTMAX: 1},
    "gradient": {RMS_NORM: 1, UP: 1, DOWN: 1},
    "checkpoint": {RMS_NORM: 1, SOFTMAX: 1},  # where the gradient is asked for: what they gave before is needed nowhere
    "nested": {RMS_NORM: 3, SOFTMAX: 3},
    "vmapped": {"rms_norm(f32[1,64], f32[64])": 1},
    "sharded": {RMS_NORM: 1},
    "tokamax": {RMS_NORM: 2},
}
FORMS = {
    "mlir": "StableHLO text", "mlir.gz": "StableHLO text", "bytecode": "MLIR bytecode",
    "portable": "StableHLO portable artifact", "export": "jax.export blob", "export.mlir": "StableHLO text",
    "hlo": "HLO text", "hlo.pb": "HLO proto",
}
OPTIMISED = {"optimised.hlo": "HLO text", "optimised.pb": "HLO proto"}


class Forms(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = tempfile.TemporaryDirectory(prefix="hone-forms-")
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
        if PACKAGES.exists():
            env["PYTHONPATH"] = str(PACKAGES)
        script = pathlib.Path(__file__).with_name("lower.py")
        made = subprocess.run([sys.executable, "-B", str(script), cls.programs.name], capture_output=True, text=True,
                              timeout=500, env={**env, "JAX_PLATFORMS": "cpu"})
        if made.returncode != 0:
            raise AssertionError(f"JAX could not lower the programs (scripts/setup python):\n{made.stderr}")

    @classmethod
    def tearDownClass(cls):
        cls.programs.cleanup()
        super().tearDownClass()

    def listed(self, program, form):
        path = pathlib.Path(self.programs.name) / f"{program}.{form}"
        return self.hone("offline", "--list", "--json", str(path)).json

    def test_every_form_gives_the_same_operations_and_counts(self):
        for program, calls in PROGRAMS.items():
            keys = {row["key"] for row in self.listed(program, "mlir")["operations"]}
            for form, name in FORMS.items():
                with self.subTest(program=program, form=form):
                    document = self.listed(program, form)
                    self.assertEqual(document["form"], name)
                    self.assertIsNone(document["note"])
                    rows = document["operations"]
                    self.assertEqual({row["call"]: row["count"] for row in rows}, calls)
                    self.assertEqual({row["key"] for row in rows}, keys)
                    self.assertLessEqual({row["matched"] for row in rows}, {"proved", "label"})

    def test_optimised_programs_give_the_same_operations(self):
        for program, calls in PROGRAMS.items():
            for form, name in OPTIMISED.items():
                with self.subTest(program=program, form=form):
                    document = self.listed(program, form)
                    self.assertEqual(document["form"], name)
                    self.assertIn("optimised", document["note"])
                    self.assertEqual({row["call"] for row in document["operations"]}, set(calls))
