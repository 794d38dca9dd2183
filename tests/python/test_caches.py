"""Caches of a program's own values, and what ejkernel's pages show of theirs: the examples run as they stand there."""

import contextvars
import dataclasses
import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import threading
import unittest
import unittest.mock
from argparse import Namespace

import numpy

import hone
import hone.ejkernel
from hone.caches import overlaid
from support import HoneTest

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "build-python/ejkernel/ops/config"
IMPORTS = CONFIG.parents[2] / "ejkernel-imports"
KEY = ("gpu:0", "matmul_v1", "key123")
TEXTS = ["", '\\""', "a|b", "ünï", "\0", "\\", '\\"\\u0000"', "\ud800", " ", "x" * 3000]


def original(name):
    """A module of the real ejkernel that needs no other."""
    path = CONFIG / f"{name}.py"
    if not path.exists():
        if os.environ.get("HONE_REQUIRE"):
            raise AssertionError(f"{path} is missing: scripts/setup python")
        raise unittest.SkipTest("ejkernel is not installed: scripts/setup python")
    spec = importlib.util.spec_from_file_location(f"original_{name}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclasses.dataclass
class Tiles:
    m: int
    n: int = 64


class MyConfig:
    def __init__(self, rows):
        self.rows = rows

    def to_dict(self):
        return {"rows": self.rows}

    @classmethod
    def from_dict(cls, data):
        return cls(data["rows"])


def put_many(place, worker):
    cache = hone.PersistentCache("shared", place)
    for i in range(20):
        cache.put("cpu", "op@v1", f"{worker}-{i}", [worker, i])


class Pages(HoneTest):
    """The examples of ejkernel's pages: with hone's names, with those of hone.ejkernel, and with the original's."""

    OVERLAY = """
cache = ConfigCache()
cache.put('dev1', 'op1', 'key1', 'original_config')
override = {('dev1', 'op1', 'key1'): 'override_config'}
with overlay_cache(override):
    config = cache.get('dev1', 'op1', 'key1')
after = cache.get('dev1', 'op1', 'key1')
"""
    PERSISTENT = """
cache = PersistentCache('/path/to/cache.json')
cache.put('gpu:0', 'matmul_v1', 'key123', my_config)
config = cache.get('gpu:0', 'matmul_v1', 'key123')
"""
    LOADERS = """
def custom_dumper(cfg): return cfg.to_dict()
def custom_loader(data): return MyConfig.from_dict(data)
cache = PersistentCache('/path/to/cache.json', custom_loader, custom_dumper)
"""

    def ran(self, text, names, **more):
        found = {name: getattr(names, name) for name in ("ConfigCache", "overlay_cache", "PersistentCache") if hasattr(names, name)}
        exec(text.replace("/path/to", str(self.folder)), found | more | {"MyConfig": MyConfig}, found)
        return found

    def test_an_overlay_shadows_a_cache(self):
        ran = self.ran(self.OVERLAY, hone)
        self.assertEqual((ran["config"], ran["after"]), ("override_config", "original_config"))

    def test_the_original_overlays_only_what_selectors_ask_and_so_does_its_stand_in(self):
        for names in (original("cache"), hone.ejkernel):
            ran = self.ran(self.OVERLAY, names)
            self.assertEqual((ran["config"], ran["after"]), ("original_config", "original_config"))

    def test_a_persistent_cache_keeps_what_is_put(self):
        for names in (hone, hone.ejkernel):
            ran = self.ran(self.PERSISTENT, names, my_config=[1, "two"])
            self.assertEqual(ran["config"], [1, "two"])
            self.assertEqual(ran["cache"].path, f"{self.folder}/cache.json")
        self.assertEqual(self.ran(self.PERSISTENT, original("persistent"), my_config=[1, "two"])["config"], [1, "two"])

    def test_loaders_and_dumpers_stand_behind_the_path(self):
        for names in (hone, hone.ejkernel):
            cache = self.ran(self.LOADERS, names)["cache"]
            cache.put(*KEY, MyConfig(7))
            self.assertEqual(cache.get(*KEY).rows, 7)
        with self.assertRaises(TypeError):  # the original takes the path for a name, and the loader for the path
            self.ran(self.LOADERS, original("persistent"))


class Keys(HoneTest):
    """What makes keys of calls."""

    def test_a_key_builder_of_the_programs_own_makes_the_keys(self):
        def by_rows(x, causal=False):
            return f"{-(-x.shape[0] // 64) * 64}-{causal}"

        x = numpy.zeros((100, 4), numpy.float32)
        for cache in (hone.ConfigCache(key_builder=by_rows),
                      hone.PersistentCache("keyed", self.store, key_builder=by_rows),
                      hone.ejkernel.PersistentCache("keyed", f"{self.folder}/keyed.json", key_builder=by_rows)):
            cache.put("cpu", "mine@v1", cache.make_key(x, causal=True), [4])
            self.assertEqual(cache.make_key(x[:70], causal=True), "128-True")
            self.assertEqual(cache.get("cpu", "mine@v1", cache.make_key(x[:70], causal=True)), [4])
            self.assertIsNone(cache.get("cpu", "mine@v1", cache.make_key(x)))
        with self.assertRaisesRegex(TypeError, "made a <class 'int'>"):
            hone.ConfigCache(key_builder=len).make_key([1])
        with self.assertRaisesRegex(TypeError, "function of a call's arguments"):
            hone.ConfigCache(key_builder="rows")

    def test_without_one_a_key_is_of_shapes_dtypes_and_plain_values(self):
        cache, x = hone.ConfigCache(), numpy.zeros((2, 3), numpy.float32)
        key = cache.make_key(x, Tiles(1), axis=-1)
        self.assertRegex(key, "^[0-9a-f]{16}$")
        self.assertEqual(key, cache.make_key(x + 1, Tiles(1), axis=-1))
        others = [cache.make_key(x.T, Tiles(1), axis=-1), cache.make_key(x.astype(int), Tiles(1), axis=-1),
                  cache.make_key(x, Tiles(2), axis=-1), cache.make_key(x, Tiles(1)), cache.make_key(x, Tiles(1), -1)]
        self.assertEqual(len({key, *others}), 6)
        with self.assertRaisesRegex(TypeError, "give the cache a key_builder"):
            cache.make_key(object())

    def test_a_program_in_c_and_one_in_python_share_caches_and_keys(self):
        program = pathlib.Path(os.environ.get("HONE_TEST_COMMAND", "build/hone")).resolve().parent / "examples" / "cache"
        if not program.exists():
            self.skipTest(f"{program} is not built")
        hone.PersistentCache("my_kernels", self.store).put("\\", "", "told by Python", [1.5])
        out = subprocess.run([program, self.store, "\\", "", "told by Python"], capture_output=True, text=True, check=True).stdout
        self.assertIn("told by Python: [1.5]", out)
        key, = re.findall("key ([0-9a-f]{16})", out)
        cache = hone.PersistentCache("my_kernels", self.store)
        self.assertEqual(cache.make_key([512, 512], causal=True), key)
        self.assertEqual(cache.get("cpu", "matmul@v1", key), {"rows": 128, "threads": 2})


class Originals(HoneTest):
    """Files that hone.ejkernel and the real ejkernel share."""

    VALUES = [Tiles(128), {"a": {"b": [1, None]}, "ü": "😀"}, {}, 3, 2.5, -0.0, float("inf"), 10 ** 30, "text", [[], {}], True, None, (1, 2)]

    def setUp(self):
        super().setUp()
        self.theirs = original("persistent").PersistentCache
        self.path = str(self.folder / "flash-attn.json")

    def test_each_gives_what_the_other_gives(self):
        makers = (self.theirs, hone.ejkernel.PersistentCache)
        for writer in makers:
            cache = writer("op", self.path)
            for i, value in enumerate(self.VALUES):
                cache.put("NVIDIA H200|cuda", f"op@v{i}", "ünï|ω", value)
            for cfg_type in (None, Tiles):
                found = []
                for reader in makers:
                    values = [reader("op", self.path, cfg_type=cfg_type if i == 0 else None)
                              .get("NVIDIA H200|cuda", f"op@v{i}", "ünï|ω") for i in range(len(self.VALUES))]
                    found.append([repr(value) for value in values])
                self.assertEqual(*found)
        texts = []
        for writer in makers:
            os.unlink(self.path)
            cache = writer("op", self.path)
            for value in (1, {"b": [float("nan")]}):
                cache.put("d", "o", "k", value)
            texts.append(pathlib.Path(self.path).read_text())
        self.assertEqual(*texts)

    def test_its_folder_is_the_default(self):
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ["EJKERNEL_PERSISTENT_CACHE_DIR"] = str(self.folder)
        self.theirs("flash-attn").put(*KEY, {"block": 64})
        self.assertEqual(hone.ejkernel.PersistentCache("flash-attn").get(*KEY), Namespace(block=64))
        del os.environ["EJKERNEL_PERSISTENT_CACHE_DIR"]
        os.environ["HOME"] = str(self.folder / "home")
        self.assertEqual(hone.ejkernel.PersistentCache("a").path, self.theirs("a").path)

    def test_what_was_imported_into_a_store_is_found_under_the_name_of_its_file(self):
        self.theirs("flash-attn", self.path).put(*KEY, {"block": 64})
        with hone.Store(self.store) as store:
            store.import_(self.path, format="ejkernel")
            self.assertEqual(hone.PersistentCache("flash-attn", store).get(*KEY), {"block": 64})
            self.assertIsNone(hone.PersistentCache("other", store).get(*KEY))


class Persistent(HoneTest):
    def places(self):
        return [f"sqlite:{self.folder}/own.db", f"json:{self.folder}/own", f"{self.folder}/own-cache.json"]

    def test_any_key_and_any_json_value_comes_back_from_any_place(self):
        for place in [*self.places(), hone.Store("memory:")]:
            file = isinstance(place, str) and not place.startswith(("sqlite:", "json:"))
            keys = [key for text in TEXTS for key in ((text, "op", "key"), ("dev", text, "key"), ("dev", "op", text))]
            values = {(name, key): {"key": [name, *key], "many": [1, 2.5, None, {"ü": "\0"}]}
                      for name in (["any"] if file else TEXTS[:-1]) for key in keys}
            caches = {name: hone.PersistentCache("-" + name, place) for name, _ in values}
            for (name, key), value in values.items():
                self.assertIsNone(caches[name].get(*key))
                caches[name].put(*key, value)
            for (name, key), value in values.items():
                self.assertEqual(caches[name].get(*key), value)

    def test_values_have_their_types_again(self):
        for place in self.places():
            cache = hone.PersistentCache("tiles", place, cfg_type=Tiles)
            cache.put(*KEY, Tiles(32))
            self.assertEqual(hone.PersistentCache("tiles", place, cfg_type=Tiles).get(*KEY), Tiles(32, 64))
            self.assertEqual(hone.PersistentCache("tiles", place).get(*KEY), {"m": 32, "n": 64})
            with self.assertLogs("hone", "WARNING"):
                self.assertIsNone(hone.PersistentCache("tiles", place, cfg_type=MyConfig).get(*KEY))

    def test_models_of_pydantic_are_taken(self):
        if not IMPORTS.exists():
            self.skipTest("pydantic is not installed: scripts/setup python")
        sys.path.append(str(IMPORTS))
        self.addCleanup(sys.path.remove, str(IMPORTS))
        from pydantic import BaseModel

        class Model(BaseModel):
            rows: int
            name: str = "a"

        cache = hone.PersistentCache("models", self.store, cfg_type=Model)
        cache.put(*KEY, Model(rows=3))
        self.assertEqual(cache.get(*KEY), Model(rows=3))

    def test_caches_of_different_names_and_places_do_not_meet(self):
        caches = [hone.PersistentCache(name, place) for place in self.places()[:2] for name in ("a", "b", "a\n", "\\")]
        for i, cache in enumerate(caches):
            cache.put(*KEY, i)
        self.assertEqual([cache.get(*KEY) for cache in caches], list(range(len(caches))))
        first, second = (hone.PersistentCache("a", "memory:") for _ in range(2))
        first.put(*KEY, 1)
        self.assertIsNone(second.get(*KEY))

    def test_what_is_no_json_changes_nothing(self):
        for place in self.places():
            cache = hone.PersistentCache("a", place)
            cache.put(*KEY, 1)
            with self.assertRaises(TypeError):
                cache.put(*KEY, object())
            self.assertEqual(cache.get(*KEY), 1)
            cache.put("d", "o", "k", 2)
            self.assertEqual(cache.get("d", "o", "k"), 2)

    def test_no_process_loses_what_another_puts(self):
        context = multiprocessing.get_context("spawn")
        for place in self.places():
            seen = hone.PersistentCache("shared", place)
            self.assertIsNone(seen.get("cpu", "op@v1", "0-0"))
            workers = [context.Process(target=put_many, args=(place, i)) for i in range(3)]
            workers += [threading.Thread(target=put_many, args=(place, i)) for i in range(3, 6)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            found = [seen.get("cpu", "op@v1", f"{worker}-{i}") for worker in range(6) for i in range(20)]
            self.assertEqual(found, [[worker, i] for worker in range(6) for i in range(20)])

    def test_a_damaged_file_is_moved_aside_and_a_folder_that_cannot_be_written_costs_nothing_in_this_process(self):
        for text in (b"", b'{"a|b|c": ', b"\0\0\0", b'{"\xed\xa0'):
            path = self.folder / "damaged.json"
            path.write_bytes(text)
            with self.assertLogs("hone", "WARNING"):
                cache = hone.PersistentCache("a", path)
                self.assertIsNone(cache.get(*KEY))
                cache.put(*KEY, 5)
            self.assertEqual(json.loads(path.read_text()), {"|".join(KEY): 5})
        self.assertEqual(len(list(self.folder.glob("damaged.json.damaged-*"))), 4)
        cache = hone.PersistentCache("a", "/proc/nowhere/cache.json")
        with self.assertLogs("hone", "WARNING"):
            cache.put(*KEY, 5)
        self.assertEqual(cache.get(*KEY), 5)

    def test_a_file_of_something_else_stays_as_it_is(self):
        path = self.folder / "other.json"
        for text in ("[1]", "my notes", '{"name": "package", "version": 1}', "5"):
            path.write_text(text)
            cache = hone.PersistentCache("a", path)
            with self.assertLogs("hone", "WARNING") as logs:
                cache.put(*KEY, 5)
            self.assertIn("it is ", logs.output[0])
            self.assertEqual((cache.get(*KEY), path.read_text()), (5, text))
        self.assertEqual([found.name for found in self.folder.glob("other*")], ["other.json", "other.json.lock"])

    def test_what_can_never_be_a_cache_is_refused(self):
        hone.PersistentCache("a", f"sqlite:{self.folder}/team.db").put(*KEY, 1)
        hone.PersistentCache("a", f"json:{self.folder}/team.json").put(*KEY, 1)
        os.mkfifo(self.folder / "pipe.json")
        before = {path: path.stat().st_ino for path in self.folder.iterdir()}
        for name, says in (("team.db", "write its URL"), ("team.json", "write its URL"), ("pipe.json", "not a regular file"), (".", "not a regular file")):
            with self.assertRaisesRegex(ValueError, says):
                hone.PersistentCache("a", self.folder / name)
        with self.assertRaisesRegex(ValueError, "not a regular file"):
            hone.PersistentCache("a", "/dev/null")
        with self.assertRaisesRegex(ValueError, "is empty"):
            hone.PersistentCache("a", "")
        self.assertEqual({path: path.stat().st_ino for path in self.folder.iterdir()}, before)
        cache = hone.PersistentCache("a", self.folder / "later.json")
        os.mkfifo(self.folder / "later.json")
        with self.assertLogs("hone", "WARNING"):
            cache.put(*KEY, 5)
        self.assertEqual(cache.get(*KEY), 5)
        self.assertTrue((self.folder / "later.json").is_fifo())

    def test_a_file_keeps_its_mode_and_a_link_stays_one(self):
        real, link = self.folder / "real.json", self.folder / "link.json"
        hone.PersistentCache("a", real).put(*KEY, 1)
        real.chmod(0o600)
        link.symlink_to("real.json")
        (self.folder / "real.json.new").write_text("of a writer that was killed")
        hone.PersistentCache("a", link).put("d", "o", "k", 2)
        self.assertTrue(link.is_symlink())
        self.assertEqual(json.loads(real.read_text()), {"|".join(KEY): 1, "d|o|k": 2})
        self.assertEqual(real.stat().st_mode & 0o777, 0o600)
        self.assertEqual([path.name for path in self.folder.glob("*.new*")], [])

    def test_keys_and_names_that_are_no_texts_are_refused(self):
        for place in [*self.places(), "memory:"]:
            cache = hone.PersistentCache("a", place)
            for key in ((None, "o", "k"), ("d", 5, "k"), ("d", "o", b"k")):
                with self.assertRaisesRegex(TypeError, "must be texts"):
                    cache.put(*key, 1)
                with self.assertRaisesRegex(TypeError, "must be texts"):
                    cache.get(*key)
        for name in (None, 5):
            with self.assertRaisesRegex(TypeError, "name of a cache must be a text"):
                hone.PersistentCache(name, self.store)
        for mapping in (5, None, [(KEY, 1)]):
            with self.assertRaisesRegex(TypeError, "a mapping from"):
                hone.overlay_cache(mapping)

    def test_without_a_place_it_stands_in_the_store_of_the_environment_or_in_hones_folder(self):
        with unittest.mock.patch.dict(os.environ, HONE_STORE=self.store):
            hone.PersistentCache("mine").put(*KEY, [1])
        self.assertEqual(hone.PersistentCache("mine", self.store).get(*KEY), [1])
        with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder)):
            hone.PersistentCache("mine").put(*KEY, [2])
        self.assertEqual(hone.PersistentCache("mine", self.folder / "hone/caches/mine.json").get(*KEY), [2])


class Memory(unittest.TestCase):
    def test_it_holds_any_value_and_names_its_keys_in_order(self):
        cache, other = hone.ConfigCache(), hone.ConfigCache()
        for i, text in enumerate(TEXTS):
            cache.put("d", text, text, i)
        self.assertEqual(cache.keys(), [("d", text, text) for text in TEXTS])
        self.assertEqual((cache.size(), other.size()), (len(TEXTS), 0))
        self.assertEqual(cache.get("d", "", ""), 0)
        cache.clear()
        self.assertEqual((cache.size(), cache.get("d", "", "")), (0, None))

    def test_overlays_nest_and_one_may_be_entered_twice(self):
        cache = hone.ConfigCache()
        cache.put(*KEY, "held")
        outer, inner = hone.overlay_cache({KEY: "outer"}), hone.overlay_cache({KEY: "inner"})
        with outer:
            with inner:
                with outer:
                    self.assertEqual(cache.get(*KEY), "outer")
                self.assertEqual(cache.get(*KEY), "inner")
            with hone.overlay_cache({KEY: None}):
                self.assertEqual(cache.get(*KEY), "outer")
        self.assertEqual(cache.get(*KEY), "held")
        self.assertIsNone(overlaid(*KEY))

    def test_a_thread_has_its_own_overlays(self):
        found = []
        with hone.overlay_cache({KEY: 1}):
            thread = threading.Thread(target=lambda: found.append(overlaid(*KEY)))
            thread.start()
            thread.join()
            taken = contextvars.copy_context()
        taken.run(lambda: found.append(overlaid(*KEY)))
        self.assertEqual(found, [None, 1])


if __name__ == "__main__":
    unittest.main()
