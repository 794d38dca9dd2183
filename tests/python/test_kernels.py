"""Algorithms and kernels that are functions of Python: registered, tried in a worker, and run in the program."""

import ctypes
import ctypes.util
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import tempfile
import time
import unittest

import numpy

import hone
from hone import _sources
from support import QUICK, HoneTest

CACHE = tempfile.TemporaryDirectory(prefix="hone-cache-")
os.environ["XDG_CACHE_HOME"] = CACHE.name

FACTOR = 2.0
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
LIBM.fabsf.restype = ctypes.c_float
LIBM.fabsf.argtypes = [ctypes.c_float]


def squares(x):
    return (x * x).mean(-1, keepdims=True)


def squares_of_nothing(x, by):
    return x


def run_program(text, *arguments, folder=None, environment=None):
    """A program of its own, as a user writes one."""
    path = pathlib.Path(folder) / "program.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.run([sys.executable, str(path), *arguments], capture_output=True, text=True, timeout=240,
                          env={**os.environ, **(environment or {})})


class KernelTest(HoneTest):
    """Each test names its algorithm by itself: what is registered stays for the process."""

    def setUp(self):
        super().setUp()
        self.x = numpy.random.default_rng(7).standard_normal((16, 64)).astype(numpy.float32)

    def algorithm(self, dtypes="f32"):
        name = "t_" + self._testMethodName[5:40]

        @hone.algorithm(f"{name}(x: T[..., d], *, by: f64 = 2) -> y: T[..., d] where T in {dtypes}", independent="...")
        def scale(x, by):
            return x * by

        return name

    def tuned(self, name, *arrays, **options):
        result = hone.tune(name, *(arrays or (self.x,)), **{**QUICK, **options})
        return result, hone.explain(name, *(arrays or (self.x,)))

    def loses(self, name, *reasons):
        """The kernel does not win and the contest says why; the reference goes on answering."""
        with self.assertRaises(hone.NotFoundError) as caught:
            self.tuned(name)
        for reason in reasons:
            self.assertIn(reason, str(caught.exception))
        numpy.testing.assert_allclose(hone.run(name, self.x), self.x * 2, rtol=1e-5)


class Competing(KernelTest):
    def test_a_reference_and_kernels_of_numpy_are_all_that_an_algorithm_needs(self):
        name = self.algorithm("f32, f16")

        @hone.kernel(name)
        def multiplied(x, by):
            return numpy.multiply(x, x.dtype.type(by))

        @hone.kernel(name, name="wrong")
        def off(x, by):
            return x * x.dtype.type(by * 1.5)

        self.assertEqual(multiplied(self.x, 2).dtype, numpy.float32)  # the function stays as it is
        numpy.testing.assert_allclose(hone.run(name, self.x, by=3), self.x * 3, rtol=1e-6)
        half = self.x.astype(numpy.float16)
        numpy.testing.assert_allclose(hone.run(name, half, by=3), half * 3, rtol=1e-2)
        _, text = self.tuned(name)
        decision = hone.decide(name, self.x)
        self.assertEqual((decision.kernel, decision.platform, decision.verified), ("multiplied", "python", True), text)
        self.assertRegex(text, r"wrong .*no")
        numpy.testing.assert_array_equal(hone.run(name, self.x), self.x * 2)

    def test_a_space_is_searched_and_its_values_come_by_name(self):
        name = self.algorithm()
        seen = []

        @hone.kernel(name, space="rows: 1..16 *4; how: whole | parts", condition="rows <= 8")
        def blocked(x, by, rows, how):
            seen.append((rows, how))
            y = numpy.empty_like(x)
            for at in range(0, len(x), rows):
                numpy.multiply(x[at:at + rows], numpy.float32(by), out=y[at:at + rows])
            return y

        result, text = self.tuned(name)
        decision = hone.decide(name, self.x)
        self.assertEqual(decision.kernel, "blocked", text)
        numpy.testing.assert_array_equal(hone.run(name, self.x), self.x * 2)
        self.assertEqual(set(decision.config), {"rows", "how"})
        self.assertEqual(len(seen), 1, "the winner runs in this process, and candidates do not")

    def test_a_compiler_in_the_first_run_takes_longer_than_runs_do(self):
        name = self.algorithm()

        @hone.kernel(name)
        def plain(x, by):
            for _ in range(20):
                y = numpy.multiply(x, x.dtype.type(by))
            return y

        @hone.kernel(name, name="compiled")
        def compiled(x, by):
            import sys
            import time

            if not hasattr(sys, "compiled_by_the_test"):
                time.sleep(1.5)
                sys.compiled_by_the_test = True
            return numpy.multiply(x, x.dtype.type(by))

        _, text = self.tuned(name, seconds=6)
        self.assertEqual(hone.decide(name, self.x).kernel, "compiled", text)

    def test_what_a_function_reads_goes_with_it(self):
        name = self.algorithm()
        local = 2.0

        @hone.kernel(name)
        def closed(x, by):
            return (x * numpy.float32(by) * local / FACTOR + squares(x) * 0).astype(numpy.float32)

        self.assertEqual(self.tuned(name)[0] and hone.decide(name, self.x).kernel, "closed")

    def test_modules_of_the_program_and_names_that_a_module_gives_go_with_it(self):
        package = self.folder / "t_package"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "numbers.py").write_text("import numpy\nTWO = numpy.float32(2)\n\ndef scaled(x, by):\n    return x * numpy.float32(by)\n")
        (package / "kernels.py").write_text("from .numbers import scaled\nfrom . import numbers\n\n"
                                            "relative = lambda x, by: scaled(x, by) / numbers.TWO * numbers.TWO\n"
                                            "print('the module is imported, and not run again in the worker')\n")
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        import t_package.kernels

        name = self.algorithm()
        hone.kernel(name, name="relative")(t_package.kernels.relative)
        self.tuned(name)
        self.assertEqual(hone.decide(name, self.x).kernel, "relative", hone.explain(name, self.x))

    def test_results_that_are_named_are_written(self):
        name = self.algorithm()

        @hone.kernel(name, arguments={"out": "y", "a": "x"})
        def written(a, out, by):
            numpy.multiply(a, numpy.float32(by), out=out)

        self.tuned(name)
        self.assertEqual(hone.decide(name, self.x).kernel, "written", hone.explain(name, self.x))
        plan = hone.bind(name, self.x)
        numpy.testing.assert_array_equal(plan(self.x), self.x * 2)

    def test_functions_of_c_are_called_by_position(self):
        @hone.algorithm("t_tanh(x: f32[n]) -> y: f32[n]", independent="n")
        def reference(x):
            return numpy.tanh(x)

        hone.kernel("t_tanh", name="of_numpy")(numpy.tanh)
        x = self.x[0]
        self.tuned("t_tanh", x)
        self.assertEqual(hone.decide("t_tanh", x).kernel, "of_numpy", hone.explain("t_tanh", x))

        @hone.algorithm("t_abs(x: f32[n]) -> y: f32[n]", independent="n")
        def absolute(x):
            return abs(x)

        @hone.kernel("t_abs")
        def of_ctypes(x):
            return numpy.array([LIBM.fabsf(one) for one in x], numpy.float32)

        self.tuned("t_abs", x)
        self.assertEqual(hone.decide("t_abs", x).kernel, "of_ctypes", hone.explain("t_abs", x))

    def test_a_decorator_of_the_program_around_hones(self):
        (self.folder / "t_wrapping.py").write_text(textwrap.dedent("""
            import functools, numpy, hone
            def K(name):
                return hone.kernel("t_wrapping", name=name)
            def counted(function):
                @functools.wraps(function)
                def wrapper(*arguments, **keywords):
                    return function(*arguments, **keywords)
                return wrapper
            @hone.algorithm("t_wrapping(x: f32[n]) -> y: f32[n]", independent="n")
            def reference(x):
                return x * 2
            @K("helper")
            def added(x):
                return x + x
            @counted
            @K("good")
            @counted
            def good(x):
                return added(x)
        """))
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        import t_wrapping  # noqa: F401

        x = self.x[0]
        self.tuned("t_wrapping", x, kernel="good")
        self.assertEqual(hone.decide("t_wrapping", x).kernel, "good", hone.explain("t_wrapping", x))

    def test_under_an_if_and_with_a_compiler_that_writes_the_environment(self):
        (self.folder / "t_conditional.py").write_text(textwrap.dedent("""
            import functools, os, hone
            WIDE = True
            def compiled(function):
                @functools.wraps(function)
                def run(x):
                    os.environ[f"T_COMPILED_{x.shape[0]}"] = "1"  # as torch's compiler tells its parts, for each new shape
                    return function(x)
                return run
            @hone.algorithm("t_conditional(x: f32[n]) -> y: f32[n]", independent="n")
            def reference(x):
                return x * 2
            if WIDE:
                @hone.kernel("t_conditional")
                @compiled
                def wide(x):
                    return x + x
        """))
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        import t_conditional  # noqa: F401

        x = self.x[0]
        self.tuned("t_conditional", x, kernel="wide")
        self.assertEqual(hone.decide("t_conditional", x).kernel, "wide", hone.explain("t_conditional", x))

    def test_the_command_says_that_it_ran_nothing_of_a_pack(self):
        name = self.algorithm()

        @hone.kernel(name)
        def doubled(x, by):
            return x * x.dtype.type(by)

        hone.pack(self.folder / "pack", name)
        command = os.environ.get("HONE_TEST_COMMAND")
        if command is None:
            self.skipTest("HONE_TEST_COMMAND does not name the command")
        for options, code, words in (([], 0, ""), (["--run"], 3, "nothing was run of 2 functions of Python")):
            done = subprocess.run([command, "pack", "check", *options, str(self.folder / "pack")], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, done)
            self.assertIn(words, done.stderr)

    def test_python_beside_c_for_an_algorithm_of_hone(self):
        @hone.kernel("rms_norm", name="t_numpy")
        def norm(x, weight, eps):
            return (x / numpy.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(eps)) * weight).astype(x.dtype)

        w = numpy.ones(64, numpy.float32)
        result = hone.tune("rms_norm", self.x, w, **{**QUICK, "evaluations": 40, "kernel": "t_numpy"})
        self.assertIn("t_numpy", hone.explain("rms_norm", self.x, w))
        self.assertTrue(result)

    def test_the_choice_is_remembered_and_a_process_without_python_takes_the_next_best(self):
        program = """
            import sys, numpy, hone
            @hone.algorithm("t_remembered(x: f32[n]) -> y: f32[n]", independent="n")
            def double(x):
                return x * 2
            @hone.kernel("t_remembered")
            def added(x):
                return x + x
            x = numpy.ones(256, numpy.float32)
            if sys.argv[1] == "tune":
                hone.tune("t_remembered", x, seconds=1, evaluations=4, progress=False)
            decision = hone.decide("t_remembered", x)
            print(decision.kernel, decision.source, hone.run("t_remembered", x)[0])
        """
        environment = {"HONE_STORE": self.store, "XDG_CACHE_HOME": str(self.folder)}
        first = run_program(program, "tune", folder=self.folder, environment=environment)
        self.assertEqual(first.stdout.strip(), "added memory 2.0", first.stderr)
        second = run_program(program, "run", folder=self.folder, environment=environment)
        self.assertEqual(second.stdout.strip(), "added store 2.0", second.stderr)


class Globals(KernelTest):
    """A worker has globals with the values that the program gave them."""

    def program(self):
        (self.folder / "t_settings.py").write_text("UNIT = 1.0\nOTHER = 5\n")
        (self.folder / "t_globals.py").write_text(textwrap.dedent("""
            import numpy
            import t_settings
            FACTOR = 3.0
            COUNT = 0
            LIMITS = {"high": 1.0, "low": (0,)}
            def scaled(x, by):
                global COUNT
                COUNT += 1
                return x * numpy.float32(by * FACTOR * LIMITS["high"] * t_settings.UNIT)
        """))
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        for name in ("t_settings", "t_globals"):
            sys.modules.pop(name, None)
        import t_globals
        import t_settings

        return t_globals, t_settings

    def test_what_the_program_changed_before_registering_is_what_is_verified(self):
        module, settings = self.program()
        module.FACTOR, module.LIMITS["high"], settings.UNIT = 2.0, 0.25, 2.0
        name = self.algorithm()
        hone.kernel(name)(module.scaled)
        self.tuned(name)
        self.assertEqual(hone.decide(name, self.x).kernel, "scaled", hone.explain(name, self.x))
        numpy.testing.assert_allclose(hone.run(name, self.x), self.x * 2, rtol=1e-6)

    def test_what_it_changes_later_is_refused_and_runs_nowhere(self):
        module, settings = self.program()
        module.FACTOR = 1.0
        name = self.algorithm()
        hone.kernel(name)(module.scaled)
        self.tuned(name)
        plan = hone.bind(name, self.x)
        numpy.testing.assert_array_equal(plan(self.x), self.x * 2)
        module.FACTOR = 3.0
        with self.assertRaisesRegex(hone.InvalidArgumentError, "scaled reads FACTOR, which was 1.0 when it was registered and is 3.0 now"):
            self.tuned(name)
        with self.assertRaisesRegex(hone.HoneError, "FACTOR"):
            plan(self.x)
        numpy.testing.assert_allclose(hone.run(name, self.x), self.x * 2, rtol=1e-6)
        module.FACTOR, settings.UNIT = 1.0, 7.0
        with self.assertRaisesRegex(hone.InvalidArgumentError, "UNIT"):
            self.tuned(name)

    def test_a_helper_that_became_another_function_is_refused_and_runs_nowhere(self):
        """As a cell of a notebook that runs again, and a module that is loaded again, make it."""
        tools, kernels = "def twice(x):\n    return x + x\n", "import t_tools\ndef helper(x):\n    return t_tools.twice(x)\ndef scaled(x, by):\n    return helper(x)\n"
        for name, text in (("t_tools", tools), ("t_helped", kernels)):
            (self.folder / f"{name}.py").write_text(text)
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        import t_helped
        import t_tools

        source = _sources.source_of(t_helped.scaled, vars(t_helped))
        changed = lambda: [one.words("scaled") for one in source.watched if one.has_changed()]  # noqa: E731
        same = {}
        exec(f"\n\n{tools}", same)
        for module, name, other in ((t_helped, "helper", numpy.negative), (t_helped, "helper", lambda x: x * 9), (t_tools, "twice", squares_of_nothing)):
            self.assertEqual(changed(), [])
            before = getattr(module, name)
            setattr(module, name, other)
            self.assertEqual(changed(), [f"scaled calls {name}, which is another function than when it was registered: register it again"])
            setattr(module, name, before)
        t_tools.twice = same["twice"]  # of the same source
        self.assertEqual(changed(), [])
        name = self.algorithm()
        hone.kernel(name)(t_helped.scaled)
        t_helped.helper = squares_of_nothing
        with self.assertRaisesRegex(hone.InvalidArgumentError, "scaled calls helper, which is another function"):
            self.tuned(name)
        numpy.testing.assert_allclose(hone.run(name, self.x), self.x * 2, rtol=1e-6)

    def test_what_a_reference_reads_is_looked_at_as_well(self):
        module, _ = self.program()
        name = "t_reads_a_global"
        hone.algorithm(f"{name}(x: T[..., d], *, by: f64 = 2) -> y: T[..., d] where T in f32")(module.scaled)
        hone.kernel(name)(squares_of_nothing)
        module.FACTOR = 5.0
        with self.assertRaisesRegex(hone.InvalidArgumentError, "reference reads FACTOR, which was 3.0 when it was registered and is 5.0 now"):
            self.tuned(name)


class Refused(KernelTest):
    def refused(self, words, register, kind=hone.InvalidArgumentError):
        with self.assertRaises(kind) as caught:
            register()
        self.assertIn(words, str(caught.exception))

    def test_a_signature_that_does_not_fit_the_function(self):
        name = self.algorithm()
        def more(x, by, scale):
            return x

        def less(x):
            return x

        def named(x, by, y, z=1):
            return x

        self.refused("asks for scale, which neither the signature (x, y, by) nor the space (none) has", lambda: hone.kernel(name)(more))
        self.refused("does not take by", lambda: hone.kernel(name)(less))
        self.refused("does not take BLOCK", lambda: hone.kernel(name, space="BLOCK: 1..4")(named))
        self.refused("expected", lambda: hone.algorithm("t_bad(x: f32[n] -> y: f32[n]")(less))
        self.refused("space", lambda: hone.kernel(name, space="z: one two")(named))
        self.refused("no algorithm", lambda: hone.kernel("t_nobody")(less), hone.NotFoundError)
        self.refused("platform must be one of", lambda: hone.kernel(name, platform="fortran")(named))
        self.refused("platform \"python\" has no option 'grid', expected one of space, condition, ",
                     lambda: hone.kernel(name, platform="python", grid="1")(named))
        with self.assertRaises(TypeError):
            hone.kernel(name)(3)

    def test_options_that_say_nothing(self):
        name = self.algorithm()

        def scaled(x, by):
            return x * by

        def bare():
            return 1

        def same(x):
            return x

        class Holder:
            pass

        self.refused('@hone.kernel("name")', lambda: hone.kernel(scaled))
        self.refused('@hone.algorithm("name(', lambda: hone.algorithm(scaled))
        for signature in (3, None, " "):
            self.refused(f"a signature must be a text, \"name(x: f32[n]) -> y: f32[n]\", got {signature!r}", lambda: hone.algorithm(signature))
        self.refused("arguments names 'z', and the function's parameters are x, by", lambda: hone.kernel(name, arguments={"z": "x"})(scaled))
        self.refused("arguments must be a dict", lambda: hone.kernel(name, arguments=["x"])(scaled))
        self.refused("condition reads rows", lambda: hone.kernel(name, condition="rows == 2 and d % 2 == 0")(scaled))
        self.refused("its parameters are none", lambda: hone.kernel(name)(bare))
        self.refused("got the class Holder", lambda: hone.kernel(name)(Holder))
        self.refused("name must be a text", lambda: hone.kernel(name, name="")(scaled))
        self.refused("priority must be an integer, got 'high'", lambda: hone.kernel(name, priority="high")(scaled))
        self.refused("names 'yes', which is not a dim of",
                     lambda: hone.algorithm("t_independent(x: f32[n]) -> y: f32[n]", independent="yes")(same))
        self.refused("independent must be a text", lambda: hone.algorithm("t_independent(x: f32[n]) -> y: f32[n]", independent=1)(same))
        self.refused("its space has x, as the signature does", lambda: hone.kernel(name, space="x: 1..4")(scaled))
        self.refused("'reference' is what the function of hone.algorithm is named", lambda: hone.kernel(name, name="reference")(scaled))
        for nameless in ("a b", "k\u00e4se", "n" * 64):
            self.refused("not a valid name of a kernel: 1 to 63 letters", lambda: hone.kernel(name, name=nameless)(scaled))
        self.assertEqual([one.name for one in hone.registry.kernels(name)], ["reference"])
        hone.kernel(name, condition="x.ndim == 2 and by == 2 and d >= 8")(scaled)

    def test_what_a_call_of_gives_no_result(self):
        name = self.algorithm()

        async def later(x, by):
            return x * by

        def pieces(x, by):
            yield x * by

        async def both(x, by):
            yield x * by

        for function, words in ((later, "is an async function"), (pieces, "is a generator"), (both, "is an async generator")):
            self.refused(f"hone.kernel: {function.__name__} {words}", lambda: hone.kernel(name)(function))
            self.refused(f"hone.algorithm: {function.__name__} {words}", lambda: hone.algorithm("t_later(x: f32[n]) -> y: f32[n]")(function))

    def test_an_algorithm_of_another_signature(self):
        name = self.algorithm()

        def other(x):
            return x

        self.refused("another source", lambda: hone.algorithm(f"{name}(x: f64[n]) -> y: f64[n]")(other))
        self.refused("softmax", lambda: hone.algorithm("softmax(x: f64[n]) -> y: f64[n]")(other))

    def test_a_closure_over_what_no_source_tells(self):
        name = self.algorithm()
        held = numpy.ones(3)

        def closed(x, by):
            return x * held[0]

        self.refused("closes over held, a ndarray", lambda: hone.kernel(name)(closed))

    def test_a_method_and_a_function_in_an_expression(self):
        name = self.algorithm()

        class Holder:
            def scaled(self, x, by):
                return x * by

        self.refused("is a method of an object", lambda: hone.kernel(name)(Holder().scaled))
        self.refused("define it with def", lambda: hone.kernel(name, name="nameless")(lambda x, by: x * by))

    def test_a_function_without_source(self):
        name = self.algorithm()
        space = {}
        exec("def made(x, by): return x", space)
        self.refused("define it in a file", lambda: hone.kernel(name)(space["made"]))

    def test_what_an_expression_made_of_a_function(self):
        """Its source has the function inside alone: that one would be verified, and the other would run."""
        name = self.algorithm()
        (self.folder / "t_around.py").write_text(textwrap.dedent("""
            import functools
            def times(x, by, more=1):
                return x * x.dtype.type(by) * more
            def negated(function):
                @functools.wraps(function)
                def run(x, by):
                    return -function(x, by)
                return run
            @negated
            def turned(x, by):
                return -x * x.dtype.type(by)
            def made():
                @negated
                def inner(x, by):
                    return -x * x.dtype.type(by)
                return inner
            def calling(function):
                def calls(x, by):
                    return function(x, by)
                return calls
            seven = functools.partial(times, more=7)
            one = functools.partial(times, more=1)
            if __name__ == "t_around":
                def guarded(x, by):
                    return x
        """))
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        import t_around
        from functools import lru_cache, partial

        inside = "is inside of functools.partial that its source does not have"
        for function in (partial(t_around.times, more=7), partial(t_around.turned), partial(t_around.made())):
            self.refused(inside, lambda: hone.kernel(name)(function))
            self.refused(inside, lambda: hone.kernel(name)(t_around.calling(function)))
            self.refused(inside, lambda: hone.algorithm("t_around(x: f32[n], *, by: f64) -> y: f32[n]")(function))
        for function in (t_around.negated(t_around.times), t_around.negated(t_around.turned), lru_cache(t_around.times)):
            self.refused("is inside of a wrapper", lambda: hone.kernel(name)(function))
        self.refused("stands under the if of its module that asks for __name__", lambda: hone.kernel(name)(t_around.guarded))
        x = self.x[0]
        for function in (t_around.turned, t_around.one, t_around.seven, t_around.made(), t_around.calling(t_around.made()), t_around.calling(t_around.times)):
            source = _sources.source_of(function, vars(t_around))
            made = {}
            exec(source.text, made)
            numpy.testing.assert_array_equal(made[source.entry](x, 2.0), function(x, 2.0), source.text)

    def test_a_file_that_has_changed_since(self):
        path = self.folder / "t_changing.py"
        path.write_text("def twice(x, by):\n    return x * by\n")
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        import t_changing

        path.write_text("def twice(x, by):\n    return x * by * 7\n")
        self.refused("changed since it was imported", lambda: hone.kernel(self.algorithm())(t_changing.twice))


class Losing(KernelTest):
    def test_special_values_that_an_algorithm_defines(self):
        @hone.algorithm("t_clipped(x: f32[m, n]) -> y: f32[m, n]", special="small infinity minus_infinity nan")
        def clipped(x):
            return numpy.clip(x, -1, 1)

        @hone.kernel("t_clipped", name="lost")
        def lost(x):  # the largest of NaN and a number is the number
            return numpy.fmin(numpy.fmax(x, -1), 1)

        @hone.kernel("t_clipped", name="kept")
        def kept(x):
            return numpy.minimum(numpy.maximum(x, numpy.float32(-1)), numpy.float32(1))

        result = hone.tune("t_clipped", numpy.ones((16, 64), "f4"), seconds=2, progress=False)
        kernels = {one["kernel"]: one for one in json.loads(result.to_json())["entries"][0]["evidence"]["kernels"]}
        self.assertEqual((result[0].kernel, kernels["lost"]["time_ns"]), ("kept", None))
        self.assertIn("nan", kernels["lost"]["reason"])
        with self.assertRaisesRegex(hone.InvalidArgumentError, "names 'inf': expected words of small, lowest"):
            hone.algorithm("t_other(x: f32[n]) -> y: f32[n]", special="nan inf")(clipped)

    def test_a_kernel_that_raises(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            raise KeyError("no such thing")

        self.loses(name, "KeyError", "no such thing")

    def test_what_a_kernel_raises_is_shown_without_what_moves_a_terminal(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            raise ValueError("\x1b[2J\x07 over\nwritten \u202e")

        self.loses(name, r"ValueError: \x1b[2J\x07 over written \u202e")

    def test_a_kernel_that_imports_what_is_not_there(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            import not_installed_anywhere

            return not_installed_anywhere.run(x)

        self.loses(name, "not_installed_anywhere")

    def test_another_shape_or_dtype(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            return x[:1] * 2

        @hone.kernel(name, name="wide")
        def wide(x, by):
            return x.astype(numpy.float64) * 2

        @hone.kernel(name, name="none")
        def none(x, by):
            x * 2

        @hone.kernel(name, name="masked")
        def masked(x, by):
            return numpy.ma.masked_less(x, 0) * 2

        self.loses(name, "of shape (1, 64), expected (16, 64)", "as float64, expected float32", "it returns None", "gives a masked array")

    def test_a_kernel_that_changes_its_inputs(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            x *= numpy.float32(by)
            return x

        self.loses(name, "read-only")

    def test_a_kernel_that_keeps_its_arrays(self):
        name = self.algorithm()

        @hone.kernel(name, name="of_result")
        def of_result(x, y, by, kept=[]):
            for before in kept:
                before[...] = 7
            kept.append(y[:1])
            numpy.multiply(x, numpy.float32(by), out=y)

        @hone.kernel(name, name="of_input")
        def of_input(x, by, kept={}):
            return kept.setdefault(id(x), x) * numpy.float32(by)

        @hone.kernel(name, name="of_torch", arrays="torch")
        def of_torch(x, by, kept=[]):
            kept.append(x)
            return x * by

        torch_too = importlib.util.find_spec("torch") is not None
        self.loses(name, "keeps y when it has returned, whose memory is the caller's: keep a copy", *["of_torch"] * torch_too)
        explained = hone.explain(name, self.x)
        self.assertEqual(explained.count("when it has returned"), 2 + torch_too, explained)

    def test_a_kernel_that_keeps_its_result_by_an_address_beside_a_reference_that_is_slow_at_first(self):
        name = "t_slow_at_first"

        @hone.algorithm(f"{name}(x: f32[..., d], *, by: f64 = 2) -> y: f32[..., d]", independent="...")
        def scale(x, by, begun=[]):  # as one that imports a package, or whose compiler works in its first run
            if not begun:
                begun.append(True)
                time.sleep(0.3)
            return x * by

        @hone.kernel(name)
        def bad(x, by, kept={}):
            address = x.ctypes.data
            if address not in kept:
                kept[address] = x * x.dtype.type(by)
            return kept[address]

        self.loses(name, "bad (1 tried): on ")

    def test_a_kernel_that_keeps_a_table_for_calls_of_another_dtype_or_with_other_values(self):
        """Honest ones, which keep theirs by all that makes it, win."""

        @hone.algorithm("t_waves(x: T[m, n]) -> y: T[m, n] where T in f32, f64")
        def waves(x):
            return x * numpy.sin(numpy.arange(x.shape[1]))

        @hone.kernel("t_waves", name="by_length")
        def by_length(x, kept={}):  # in the dtype of the first call of all
            if x.shape[1] not in kept:
                kept[x.shape[1]] = numpy.sin(numpy.arange(x.shape[1])).astype(x.dtype)
            return (x * kept[x.shape[1]]).astype(x.dtype)

        @hone.kernel("t_waves", name="by_dtype_too")
        def by_dtype_too(x, kept={}):
            key = x.shape[1], x.dtype.char
            if key not in kept:
                kept[key] = numpy.sin(numpy.arange(x.shape[1])).astype(x.dtype)
            for _ in range(30):
                y = (x * kept[key]).astype(x.dtype)
            return y

        @hone.algorithm("t_cut(x: f32[m, n], *, w: i64? = none) -> y: f32[m, n]")
        def cut(x, w):
            return x if w is None else x * (numpy.arange(x.shape[1]) < w)

        @hone.kernel("t_cut", name="by_shape")
        def by_shape(x, w, kept={}):
            if x.shape not in kept:
                kept[x.shape] = numpy.where(numpy.arange(x.shape[1]) < (x.shape[1] if w is None else w), x.dtype.type(1), x.dtype.type(0))
            return x * kept[x.shape]

        @hone.kernel("t_cut", name="by_value_too")
        def by_value_too(x, w, kept={}):
            key = x.shape, w
            if key not in kept:
                kept[key] = numpy.where(numpy.arange(x.shape[1]) < (x.shape[1] if w is None else w), x.dtype.type(1), x.dtype.type(0))
            for _ in range(30):
                y = x * kept[key]
            return y

        for name, honest, reason, x in (("t_waves", "by_dtype_too", r"by_length.*for t_waves\(f64.* after t_waves\(f32", self.x.astype(float)),
                                        ("t_cut", "by_value_too", r"by_shape.*for t_cut\(.*w=.* after t_cut\(", self.x)):
            _, text = self.tuned(name, x, seconds=3)
            self.assertRegex(text, reason)
            self.assertEqual(hone.decide(name, x).kernel, honest, text)

    def test_an_algorithm_that_does_not_fall_apart_as_it_says(self):
        """Of such a one a batch would be computed as one call. Along the other dim the same is true, and its kernel wins."""
        for axis, dim in enumerate("mn"):

            @hone.algorithm(f"t_sums_{dim}(x: f32[m, n], *, axis: i64 = {axis}) -> y: f32[m, n]", independent="m")
            def sums(x, axis):
                return numpy.cumsum(x, axis)

            @hone.kernel(f"t_sums_{dim}", name="narrow")
            def narrow(x, axis):
                return numpy.cumsum(x, axis, dtype=x.dtype)

        with self.assertRaisesRegex(hone.KernelFailedError, r"^independent = 'm' is not true of the algorithm: .*part 15 of 16: y\["):
            self.tuned("t_sums_m")
        self.tuned("t_sums_n")
        self.assertEqual(hone.decide("t_sums_n", self.x).kernel, "narrow")

    def test_a_kernel_that_keeps_copies_or_itself_is_fine(self):
        name = self.algorithm()

        @hone.kernel(name)
        def good(x, by, kept={}):
            kept.setdefault(x.shape, x.copy())

            def around(rows):
                return around(rows[1:]) if len(rows) > 9 else x * numpy.float32(by)

            return around(x)

        self.assertEqual(self.tuned(name)[0][0].kernel, "good")

    def test_a_kernel_that_never_returns(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            while True:
                pass

        with self.assertRaisesRegex(hone.NotFoundError, "bad .*no answer within 1 s"):
            self.tuned(name, candidate_seconds=1, seconds=3)

    def test_a_dict_with_other_names(self):
        name = self.algorithm()

        @hone.kernel(name)
        def named(x, by):
            return {"z": x * x.dtype.type(by), "w": x}

        self.loses(name, "gives no y: the dict that it returns has 'z', 'w', and the results are y")

    def test_a_reference_that_never_returns_is_waited_for_no_longer_than_its_packages_need(self):
        @hone.algorithm("t_endless_reference(x: f32[n]) -> y: f32[n]")
        def endless(x):
            while True:
                pass

        @hone.kernel("t_endless_reference")
        def good(x):
            return x

        begun = time.monotonic()
        with self.assertRaisesRegex(hone.HoneError, "the reference took longer than 30 s"):
            hone.tune("t_endless_reference", self.x[0], seconds=0.5)
        self.assertLess(time.monotonic() - begun, 90)

    def test_one_that_never_returns_beside_a_good_one_is_named_with_its_seconds(self):
        name = self.algorithm()

        @hone.kernel(name)
        def good(x, by):
            return x * x.dtype.type(by)

        @hone.kernel(name)
        def endless(x, by):
            while True:
                pass

        result, explained = self.tuned(name, seconds=2)
        self.assertEqual(result[0].kernel, "good")
        self.assertRegex(result[0].undecided, r"^endless was not ready in its time; try --seconds \d+")
        self.assertRegex(str(result), r"\n  endless +was not ready after [\d.]+ s, its share of the contest's time.* 1 timeout\n")
        self.assertRegex(explained, r"endless +yes .*\n +failed: 1 may be tried again .*timeout {}: was not ready after [\d.]+ s")

    def test_a_kernel_that_ends_its_process(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            import os

            os._exit(0)

        @hone.kernel(name, name="killed")
        def killed(x, by):
            import os
            import signal

            os.kill(os.getpid(), signal.SIGSEGV)

        self.loses(name)

    def test_a_kernel_that_slows_down_what_others_call(self):
        name = self.algorithm()

        @hone.kernel(name, priority=20)
        def bad(x, by):
            def slow(*args):
                for _ in range(3000):
                    pass
                return numpy.add(*args)

            numpy.multiply = slow
            return x * x.dtype.type(by)

        @hone.kernel(name)
        def honest(x, by):
            return numpy.multiply(x, x.dtype.type(by))

        @hone.kernel(name, priority=20)
        def worse(x, by):
            import hone

            hone.run = None
            return x * x.dtype.type(by)

        _, text = self.tuned(name)
        self.assertIn("changes numpy.multiply of its interpreter", text)
        self.assertIn("changes hone.run of its interpreter", text)
        self.assertEqual(hone.decide(name, self.x).kernel, "honest", text)

    def test_a_kernel_that_changes_a_setting_in_a_run(self):
        name = self.algorithm()

        @hone.kernel(name, priority=20)
        def bad(x, by):
            import sys

            sys.setrecursionlimit(400)
            return x * x.dtype.type(by)

        @hone.kernel(name)
        def honest(x, by):
            def halves(count):
                return 1 if count == 0 else halves(count - 1)

            return x * x.dtype.type(by) * halves(600)

        _, text = self.tuned(name)
        self.assertIn("changes sys.setrecursionlimit of its interpreter", text)
        self.assertEqual(hone.decide(name, self.x).kernel, "honest", text)

    def test_kernels_that_have_the_interpreter_call_what_others_wait_for(self):
        name = self.algorithm()

        @hone.kernel(name, priority=20)
        def traces(x, by):
            import tracemalloc

            tracemalloc.start()
            return x * x.dtype.type(by)

        @hone.kernel(name, priority=20)
        def collects(x, by):
            import gc

            gc.callbacks.append(lambda phase, info: sum(range(9000)))
            return x * x.dtype.type(by)

        @hone.kernel(name, priority=20)
        def profiles(x, by):
            import threading

            threading.setprofile(lambda *event: None)
            return x * x.dtype.type(by)

        @hone.kernel(name)
        def honest(x, by):  # which puts back what it changes; tracemalloc.stop() beside another thread may end the process
            import gc

            def called(phase, info):
                sum(range(9))

            gc.callbacks.append(called)
            try:
                return x * x.dtype.type(by)
            finally:
                gc.callbacks.remove(called)

        _, text = self.tuned(name, seconds=6)
        for changed in ("tracemalloc", "the callbacks of the collector of garbage", "threading.setprofile"):
            self.assertIn(f"changes {changed} of its interpreter", text)
        self.assertEqual(hone.decide(name, self.x).kernel, "honest", text)

    def test_a_kernel_may_raise_the_recursion_limit_as_compilers_do(self):
        name = self.algorithm()

        @hone.kernel(name)
        def honest(x, by):
            import sys

            sys.setrecursionlimit(max(sys.getrecursionlimit(), 4321))
            return x * x.dtype.type(by)

        _, text = self.tuned(name)
        self.assertEqual(hone.decide(name, self.x).kernel, "honest", text)

    def test_a_module_may_make_settings_as_it_is_imported(self):
        name = self.algorithm()
        (self.folder / "t_recursion.py").write_text("import sys\nsys.setrecursionlimit(sys.getrecursionlimit() + 321)\n")
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        self.addCleanup(sys.modules.pop, "t_recursion", None)
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        import t_recursion

        @hone.kernel(name)
        def honest(x, by):
            assert t_recursion.sys.getrecursionlimit() > 321, t_recursion.__file__
            return x * x.dtype.type(by)

        _, text = self.tuned(name)
        self.assertEqual(hone.decide(name, self.x).kernel, "honest", text)

    def test_a_kernel_that_forks(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            import os

            os.fork()
            return x * numpy.float32(by)

        self.loses(name, "child processes")

    def test_what_a_kernel_prints_goes_nowhere(self):
        done = run_program("""
            import numpy, hone
            @hone.algorithm("t_prints(x: f32[n]) -> y: f32[n]", independent="n")
            def double(x):
                return x * 2
            @hone.kernel("t_prints")
            def loud(x):
                print("loud")
                return x + x
            x = numpy.ones(256, numpy.float32)
            hone.tune("t_prints", x, seconds=1, evaluations=4, progress=False)
        """, folder=self.folder, environment={"XDG_CACHE_HOME": str(self.folder)})
        self.assertEqual((done.stdout, done.returncode), ("", 0), done.stderr)

    def test_a_kernel_that_allocates_without_end(self):
        name = self.algorithm()

        @hone.kernel(name)
        def bad(x, by):
            held = []
            while True:
                held.append(numpy.empty(1 << 27))

        self.loses(name)


class Interrupted(KernelTest):
    """What the program raises while a kernel runs in it is the program's, and no kernel's failure."""

    def winner(self):
        """The name of an algorithm, whose kernel sends this process a signal when the first number of x is 7."""
        name = self.algorithm()

        @hone.kernel(name)
        def fast(x, by):
            if x[0, 0] == 7:
                import os
                import signal
                import time

                os.kill(os.getpid(), signal.SIGUSR1 if x[0, 1] == 7 else signal.SIGINT)
                time.sleep(60)
            return x * x.dtype.type(by)

        self.tuned(name)
        self.assertEqual(hone.decide(name, self.x).kernel, "fast")
        return name

    def still_answers(self, name):
        numpy.testing.assert_array_equal(hone.run(name, self.x), self.x * 2)
        self.assertEqual(hone.decide(name, self.x).kernel, "fast", hone.explain(name, self.x))

    def test_by_control_c(self):
        name, x = self.winner(), self.x.copy()
        x[0, :2] = 7, 0
        with self.assertRaises(KeyboardInterrupt):
            hone.run(name, x)
        plan = hone.bind(name, x)
        with self.assertRaises(KeyboardInterrupt):
            plan(x)
        self.still_answers(name)

    def test_by_a_handler_that_raises(self):
        class Late(Exception):
            pass

        def say_late(*_):
            raise Late("the program's own limit")

        name, x = self.winner(), self.x.copy()
        x[0, :2] = 7, 7
        before = signal.signal(signal.SIGUSR1, say_late)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        with self.assertRaisesRegex(Late, "the program's own limit"):
            hone.run(name, x)
        self.still_answers(name)


class WithStrides(KernelTest):
    def test_arrays_are_taken_as_they_lie(self):
        name = self.algorithm()

        @hone.kernel(name)
        def multiplied(x, by):
            return x * x.dtype.type(by)

        for x in (self.x.T, self.x[:, ::2], self.x[::-1], numpy.broadcast_to(self.x[:1], (16, 64))):
            numpy.testing.assert_array_equal(hone.run(name, x), x * 2)
        self.tuned(name, self.x.T)
        self.assertEqual(hone.decide(name, self.x.T).kernel, "multiplied")

    def test_one_that_takes_them_to_be_packed_is_wrong(self):
        name = self.algorithm()

        @hone.kernel(name, priority=20)
        def packed(x, by):
            import ctypes

            there = ctypes.cast(x.ctypes.data, ctypes.POINTER(ctypes.c_float * x.size)).contents
            return numpy.array(there, numpy.float32).reshape(x.shape) * x.dtype.type(by)

        numpy.testing.assert_array_equal(hone.run(name, self.x.T), self.x.T * 2)
        with self.assertRaisesRegex(hone.NotFoundError, "packed"):
            self.tuned(name, self.x.T)


class OfJax(KernelTest):
    PROGRAM = """
        import sys, numpy, jax, jax.numpy as jnp, hone, hone.jax
        @hone.algorithm("t_jax(x: T[..., d], *, eps: f64 = 1e-5) -> y: T[..., d] where T in f32, f16", independent="...")
        def centred(x, eps):
            assert x.dtype == jnp.float64
            return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + eps)
        @hone.jax.kernel("t_jax")
        @jax.jit
        def fused(x, eps):
            y = x.astype(jnp.float32)
            return ((y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + eps)).astype(x.dtype)
        x = numpy.random.default_rng(0).standard_normal((8, 64)).astype(numpy.float32)
        if sys.argv[1] == "tune":
            hone.tune("t_jax", x, seconds=2, evaluations=4, progress=False)
        decision = None if sys.argv[1] == "run" else hone.decide("t_jax", x)
        y = hone.run("t_jax", x)
        wide = x.astype(numpy.float64)
        right = (wide - wide.mean(-1, keepdims=True)) / numpy.sqrt(wide.var(-1, keepdims=True) + 1e-5)
        print(abs(y - right).max() < 1e-5, hone.call("t_jax", x).decide()["platform"])
        if len(sys.argv) > 2:
            print(hone.pack(sys.argv[2]).lost)
    """

    def test_a_function_of_jax_is_exported_and_runs_without_python(self):
        # Python finds the plugin where it imports from, a program without it where it is told.
        environment = {"HONE_STORE": self.store, "XDG_CACHE_HOME": str(self.folder), "JAX_PLATFORMS": "cpu", "HONE_PJRT_PLUGIN": "", "VIRTUAL_ENV": ""}
        plugin = "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
        folder = next((one for one in sys.path if (pathlib.Path(one) / plugin).is_file()), str(pathlib.Path(numpy.__file__).parents[1]))
        first = run_program(self.PROGRAM, "tune", str(self.folder / "pack"), folder=self.folder, environment=environment)
        self.assertEqual(first.stdout.splitlines()[:1], ["True xla"], first.stderr)
        second = run_program(self.PROGRAM, "run", folder=self.folder, environment=environment)
        self.assertEqual(second.stdout.splitlines(), ["True xla"], second.stderr)
        command = os.environ.get("HONE_TEST_COMMAND")
        if command:  # a program without Python
            told = subprocess.run([command, "explain", "--all", "t_jax(f32[8,64])"], capture_output=True, text=True,
                                  env={**os.environ, **environment, "HONE_PACK_PATH": str(self.folder / "pack"), "HONE_PYTHON_PACKAGES": folder})
            self.assertRegex(told.stdout, r"(?s)answered by store: xla/fused_.*python +reference +no .*runs no Python", told.stdout + told.stderr)


    def test_a_function_of_jax_is_exported_with_the_types_that_it_has_in_the_program(self):
        """jax.random makes float64 under jax_enable_x64, and float32 without: the first is no result of a call in float32."""
        done = run_program("""
            import numpy, jax, hone, hone.jax
            @hone.algorithm("t_typed(x: T[n]) -> y: T[n] where T in f32, f64", independent="n")
            def double(x):
                return x * 2
            @hone.jax.kernel("t_typed")
            @jax.jit
            def drawn(x):
                return x * 2 + 0 * jax.random.normal(jax.random.key(0), x.shape)
            @hone.jax.kernel("t_typed")
            @jax.jit
            def short(x):
                return (x * 2)[:-1]
            for dtype in (numpy.float32, numpy.float64):
                result = hone.tune("t_typed", numpy.ones(8, dtype), seconds=2, evaluations=8, progress=False)
                print(hone.call("t_typed", numpy.ones(8, dtype)).decide()["platform"])
        """, folder=self.folder, environment={"XDG_CACHE_HOME": str(self.folder), "JAX_PLATFORMS": "cpu", "HONE_PJRT_PLUGIN": "", "VIRTUAL_ENV": ""})
        self.assertEqual(done.stdout.split(), ["xla", "xla"], done.stderr)
        self.assertIn("short of t_typed does not compile for t_typed(f32[8]) and does not compete: InvalidArgumentError: gives y as float32 of shape (7,), "
                      "expected float32 of shape (8,)", done.stderr)


class Again(KernelTest):
    def test_a_cell_that_runs_again_takes_the_place_of_what_it_registered(self):
        done = run_program("""
            import numpy, hone
            @hone.algorithm("t_again(x: f32[n]) -> y: f32[n]", independent="n")
            def double(x):
                return x * 2
            def once(x):
                return x + x
            def twice(x):
                return numpy.add(x, x)
            for function in (once, once, twice):
                hone.kernel("t_again", name="cell")(function)
            x = numpy.ones(256, numpy.float32)
            print([kernel.name for kernel in hone.registry.kernels("t_again")], hone.run("t_again", x)[0])
            hone.use(hone.Runtime())
            print(hone.run("t_again", x)[0])
            try:
                hone.kernel("t_again", name="cell")(once)
            except hone.InvalidArgumentError as error:
                print(error)
        """, folder=self.folder, environment={"XDG_CACHE_HOME": str(self.folder)})
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["['cell', 'reference'] 2.0", "2.0"], done.stderr)
        self.assertIn("give it another name", lines[2])


if __name__ == "__main__":
    unittest.main()
