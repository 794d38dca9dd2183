"""hone store export, import, merge, diff, prune and hone record export; files exchanged with the real ejkernel."""

import dataclasses
import hashlib
import importlib.util
import json
import math
import os
import shutil
import sys

from support import DATA, DONE, NO, NORM, NORM_NEAR, USAGE, WORLD
from test_stores import StoreTest

# scripts/setup installs it. The one file that is the cache needs nothing else of the package, nor of JAX.
PERSISTENT = DATA.parent / "build-python" / "ejkernel" / "ops" / "config" / "persistent.py"
TOKAMAX = DATA.parent / "build-python" / "tokamax" / "data" / "autotuning"
GOLDEN = DATA / "golden" / "persistent"
KEY = "0123456789abcdef"


@dataclasses.dataclass
class Config:
    block_m: int
    platform: str = "auto"
    scale: float = 1e-07


def same(a, b):
    """Equal, and NaN is NaN."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


class ExchangeTest(StoreTest):
    def imported(self, *files, code=DONE, **options):
        return self.hone("store", "import", "--json", *map(str, files), code=code, **options).json

    def url(self, name):
        return f"sqlite:{self.folder}/{name}.db"


class RealEjkernel(ExchangeTest):
    def setUp(self):
        super().setUp()
        if not PERSISTENT.exists():
            if os.environ.get("HONE_REQUIRE"):
                self.fail(f"{PERSISTENT} is missing: scripts/setup python")
            self.skipTest("ejkernel is not installed: scripts/setup python")
        spec = importlib.util.spec_from_file_location("ejkernel_persistent", PERSISTENT)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        self.cache_of = module.PersistentCache

    def cache(self, path, **options):
        return self.cache_of("op", str(path), **options)

    def test_what_it_wrote_is_imported_and_it_loads_what_hone_exports(self):
        path = self.folder / "flash-attn.json"
        cache = self.cache(path)
        cache.put("cpu|cpu", "flash_attention@v2", KEY, Config(64))
        cache.put("NVIDIA H200|PJRT C API\ncuda 12090", "flash_attention@v2", KEY, {"block_m": float("inf"), "b": None})
        cache.put("ünï|ω", "op with space@v0", KEY, [1, [2.5, -0.0], "😀\u2028"])
        cache.put("", "raw@v1", KEY, 10 ** 30)
        cache.put("cpu", "nothing@v1", KEY, None)
        answer = self.imported(path)
        self.assertEqual((answer["foreign"], answer["refused"]), (5, 0))
        out = self.folder / "out"
        out.mkdir()
        self.hone("store", "export", str(out), "--format", "ejkernel")
        again = self.cache(out / "flash-attn.json", cfg_type=Config)
        self.assertTrue(same(again._data, cache._data))
        self.assertEqual(again.get("cpu|cpu", "flash_attention@v2", KEY), Config(64))

    def test_it_finds_what_was_tuned_for_a_program(self):
        """With the real executors: tests/python/test_ejkernel.py."""
        self.hone("offline", str(DATA / "golden" / "lowered" / "one.bc"), "--seconds", "1", "--evals", "4")
        self.hone("tune", NORM, "--seconds", "1", "--evals", "4")
        answer = self.hone("store", "export", f"{self.folder}/out/", "--format", "ejkernel", "--json").json
        self.assertEqual(answer["files"], ["sdpa.json"])
        (line,) = answer["lines"]
        self.assertTrue(line["entry"].startswith("rms_norm@v1 "), line)
        self.assertIn("no call of ejkernel's", line["reason"])
        config = self.cache(self.folder / "out" / "sdpa.json").get("cpu|cpu", "scaled_dot_product_attention@v0", "2133cfa20c40fe20")
        self.assertEqual((config.platform, config.backend, config.block_q), ("xla", "any", 128))

    def test_every_sample_comes_back_as_it_was(self):
        self.imported(GOLDEN)
        out = self.folder / "out"
        out.mkdir()
        files = self.hone("store", "export", str(out), "--format", "ejkernel", "--json").json["files"]
        written = {}
        for file in files:
            written.update(self.cache(out / file)._data)
        samples = {}
        for path in GOLDEN.glob("*.json"):
            samples.update(self.cache(path)._data)
        self.assertGreater(len(samples), 100)
        self.assertTrue(same(written, samples))

    def test_its_writers_lose_nothing_in_a_json_store(self):
        """Eight processes lost nearly all there; every import here is kept."""
        store = f"json:{self.folder}/team"
        files = []
        for i in range(8):
            path = self.folder / f"{i}.json"
            self.cache(path).put("cpu", "op@v1", f"{i:016x}", {"i": i})
            files.append(path)
        running = [self.start("store", "import", str(path), "--store", store) for path in files]
        for process in running:
            process.communicate(timeout=120)
            self.assertEqual(process.returncode, DONE)
        self.assertEqual(self.hone("store", "stat", "--json", "--store", store).json["foreigns"], 8)


class Labels(ExchangeTest):
    """What a program's labels name is found by them, also on another machine."""

    LABELLED = str(DATA / "golden" / "lowered" / "one.bc")  # one operation, stamped with its hash
    NAME, FOREIGN = "scaled_dot_product_attention", "2133cfa20c40fe20"
    SHORT = ["--seconds", "1", "--evals", "4", "--json"]

    def one(self, document):
        (entry,), (alias,) = document["entries"], document["aliases"]
        self.assertEqual((alias["scheme"], alias["operation"], alias["foreign_key"]), ("ejkernel", f"{self.NAME}@v0", self.FOREIGN))
        self.assertEqual((alias["algorithm"], alias["version"], alias["key"]),
                         (entry["algorithm"], entry["version"], entry["key"]))
        self.assertIn('"init_bias":null', alias["foreign_spec"])
        return entry

    def found(self, entry, url):
        """By key, by label, by the label's end: in the store, and by the chain."""
        names = (self.FOREIGN, f"{self.NAME}@v0:{self.FOREIGN}", f"ejkernel_ops#{self.NAME}@v0:{self.FOREIGN}",
                 f"hone#{self.NAME}.v1:{entry['key']}", entry["key"])
        for name in names:
            row = self.hone("store", "get", name, "--json", "--store", url).json
            self.assertEqual((row["kernel"], row["config"], row["call"]), (entry["kernel"], entry["config"], entry["call"]))
            answer = self.hone("explain", name, "--json", "--store", url).json
            self.assertEqual((answer["source"], answer["kernel"], answer["key"]), ("store", entry["kernel"], entry["key"]))
        again = self.hone("tune", names[1], *self.SHORT, "--store", url).json
        self.assertEqual(self.one(again)["kernel"], entry["kernel"])

    def test_a_result_carries_its_labels_to_another_machine(self):
        document = self.hone("offline", self.LABELLED, *self.SHORT).json
        entry = self.one(document)
        self.found(entry, self.store)
        other = self.url("other")
        self.put(document, env={"HONE_STORE": other})
        self.assertEqual(self.hone("store", "stat", "--json", "--store", other).json["aliases"], 1)
        self.found(entry, other)

    def test_a_result_that_was_not_stored_has_them_and_so_has_a_second_one(self):
        self.one(self.hone("offline", self.LABELLED, *self.SHORT, "--no-store").json)
        self.assertEqual(self.stat()["aliases"] if self.hone("store", "stat", code=None).code == DONE else 0, 0)
        self.hone("offline", self.LABELLED, *self.SHORT)
        self.one(self.hone("offline", self.LABELLED, *self.SHORT).json)

    def test_what_ejkernel_recorded_is_found_by_its_key(self):
        rows = json.loads((DATA / "golden" / "lowered" / "many.recorded.json").read_text())
        rows["invocations"] = [row for row in rows["invocations"] if row["key"] == "b2fadcdadf800aa8"]
        self.hone("record", "import", self.write("calls.json", json.dumps(rows)))
        document = self.hone("tune", "--recorded", *self.SHORT).json
        (alias,) = document["aliases"]
        self.assertEqual((alias["operation"], alias["foreign_key"]), ("mean_pooling@v0", "b2fadcdadf800aa8"))
        answer = self.hone("explain", "b2fadcdadf800aa8", "--json").json
        self.assertEqual((answer["source"], answer["call"]), ("store", "mean_pooling(f32[2,64,24])"))

    def test_a_call_that_is_decided_with_its_bucket_is_found_too(self):
        rows = json.loads((DATA / "golden" / "lowered" / "many.recorded.json").read_text())
        row = next(row for row in rows["invocations"] if row["key"] == "d2b85fb5dc2f34a3")
        spec = row["spec"].replace('"shape":[1,32,4,16]', '"shape":[1,100,4,16]')
        row.update(spec=spec, key=hashlib.sha256(spec.encode()).hexdigest()[:16])
        self.hone("record", "import", self.write("calls.json", json.dumps(dict(rows, invocations=[row]))))
        document = self.hone("tune", "--recorded", *self.SHORT).json
        (entry,), (alias,) = document["entries"], document["aliases"]
        self.assertEqual((alias["operation"], alias["foreign_key"]), ("flash_attention@v2", row["key"]))
        self.assertEqual(alias["entry"], entry["key"])
        self.assertNotEqual(alias["key"], entry["key"])
        self.put(document, env={"HONE_STORE": self.url("other")})
        for url in (self.store, self.url("other")):
            self.assertEqual(self.hone("store", "get", row["key"], "--json", "--store", url).json["key"], entry["key"])
            answer = self.hone("explain", row["key"], "--json", "--store", url).json
            self.assertEqual((answer["key"], answer["bucket"], answer["source"]), (alias["key"], entry["key"], "store"))

    def test_labels_that_mean_something_else_are_neither_imported_nor_put(self):
        document = self.hone("offline", self.LABELLED, *self.SHORT, "--no-store").json
        softmax = self.hone("key", "softmax(f32[8,64])", "--json").json
        for change, says in (({"key": "0" * 16}, "spec hashes to"), ({"key": "none", "spec": None}, "key: 16 lower-case hex digits"),
                             ({"foreign_key": "0" * 16}, "foreign_spec hashes to"), ({"scheme": "abacus"}, "scheme: 'abacus' is unknown"),
                             ({"algorithm": "softmax", **{name: softmax[name] for name in ("key", "spec")}}, "cannot be a call of softmax"),
                             ({name: softmax[name] for name in ("key", "spec")}, "spec: expected a call of")):
            (alias,) = document["aliases"]
            path = self.write("wrong.json", json.dumps({**document, "aliases": [{**alias, **change}]}))
            with self.subTest(change):
                answer = self.imported(path, code=NO)
                self.assertEqual((answer["refused"], answer["aliases"]), (1, 0))
                self.assertIn(says, answer["lines"][0]["reason"])
                self.refused("store", "put", path, code=WORLD, says=["aliases[0]: ", says])

    def test_what_no_store_knows_is_named(self):
        self.hone("tune", NORM, "--seconds", "1", "--evals", "4")
        self.refused("explain", self.FOREIGN, code=NO, says=["no store knows", self.FOREIGN])
        self.refused("store", "get", self.FOREIGN, code=NO, says=["no decision", self.FOREIGN])
        self.refused("explain", "flash_attention@v2:123", says=["flash_attention@v2:123", "16 hex digits"])
        self.refused("store", "get", "flash_attention@v2:123", says=["16 hex digits"])


class Import(ExchangeTest):
    def test_a_damaged_file_leaves_the_store_as_it_was(self):
        self.put(self.document())
        good = self.write("good.json", '{"a|o@v1|k": 1}')
        for text in ("", "{", '{"a|o@v1|k": 1', "[1]", "[" * 100000, "\0", '{"hone_result":7,"entries":[]}'):
            bad = self.write("bad.json", text)
            with self.subTest(text[:20]):
                self.refused("store", "import", good, bad, code=WORLD, says="bad.json")
        self.assertEqual(self.stat()["decisions"], 1)
        self.assertEqual(self.stat()["foreigns"], 0)

    def test_entries_that_are_refused_are_told_and_the_rest_is_taken(self):
        document = self.document()
        wrong = dict(document["entries"][0], config={"warp": 9}, key=KEY)
        wrong.pop("spec")
        wrong.pop("call")
        document["entries"].append(wrong)
        path = self.write("some.json", json.dumps(document))
        answer = self.imported(path, code=NO)
        self.assertEqual((answer["taken"], answer["refused"]), (1, 1))
        self.assertIn("warp", answer["lines"][0]["reason"])
        again = self.hone("store", "import", path, code=NO)
        self.assertIn("refused rms_norm@v1", again.err)
        self.assertIn("1 equal", again.out)

    def test_what_would_stand_for_another_call_or_kernel_is_neither_imported_nor_put(self):
        self.put(self.document())
        before = self.hone("store", "list", "--json").lines
        for change, says in (({"call": NORM_NEAR}, f"call: '{NORM_NEAR}' has the key"),
                             ({"call": "rms_norm(4)"}, "call: expected a call of rms_norm"),
                             ({"spec": "{}"}, "spec hashes to"),
                             ({"config": {"warp": 9}}, "no parameter 'warp'"),
                             ({"verified": "yes"}, "verified: true or false is expected")):
            document = self.document()
            document["entries"][0].update(change)
            path = self.write("wrong.json", json.dumps(document))
            with self.subTest(change):
                (line,) = self.imported(path, code=NO)["lines"]
                self.assertIn(says, line["reason"])
                self.refused("store", "put", path, code=WORLD, says=["entries[0]: ", says])
                self.assertEqual(self.hone("store", "list", "--json").lines, before)

    def test_many_refusals_are_bounded_in_words(self):
        path = self.write("many.json", json.dumps({f"key {i}": 1 for i in range(5000)}))
        answer = self.hone("store", "import", path, code=NO)
        self.assertLess(len(answer.err.splitlines()), 30)
        self.assertIn("and 4980 more", answer.err)

    def test_a_folder_is_read_and_nothing_outside_of_it(self):
        folder = self.folder / "caches"
        folder.mkdir()
        (folder / "a.json").write_text('{"d|o@v1|a": 1}')
        (folder / "notes.txt").write_text("no JSON")
        outside = self.folder / "outside.json"
        outside.write_text('{"d|o@v1|secret": 1}')
        (folder / "link.json").symlink_to(outside)
        (folder / "deep.json").mkdir()
        self.assertEqual(self.imported(folder)["foreign"], 1)

    def test_an_export_stays_in_its_folder(self):
        path = self.write("..%2fevil.json", json.dumps({"d|../../evil@v1|a": 1}))
        self.imported(path)
        self.imported("-", input=json.dumps({"d|../../evil@v1|b": 1}))
        out = self.folder / "deep" / "out"
        files = self.hone("store", "export", f"{out}/", "--format", "ejkernel", "--json").json["files"]
        self.assertEqual(sorted(files), sorted(os.listdir(out)))
        self.assertEqual(os.listdir(out.parent), ["out"])

    def test_tokamax_files_are_read_and_written(self):
        folder = self.folder / "nvidia_h100"
        folder.mkdir()
        path = folder / "normalization.json"
        document = {json.dumps({"x": "bf16[384,64]"}): {json.dumps({"block_m": 32}): {"evaluation_times_ms": [0.5, 0.1]}},
                    json.dumps({"x": "f32[1]"}): {}}
        path.write_text(json.dumps(document))
        answer = self.imported(path, "--verbose")
        self.assertEqual(answer["foreign"], 2)
        self.assertTrue(any("block_m" in line["reason"] for line in answer["lines"]))
        out = self.folder / "out"
        out.mkdir()
        self.hone("store", "export", str(out), "--format", "tokamax")
        self.assertEqual(json.loads((out / "nvidia_h100" / "normalization.json").read_text()), document)

    def write_tokamax(self):
        """The layout of tokamax's own folder: a folder a device, and files of no bytes among the others."""
        root = self.folder / "autotuning"
        for device, operations in (("nvidia_h100", ("normalization", "ragged_dot")), ("tpu7x", ("normalization",))):
            (root / device).mkdir(parents=True)
            (root / device / "flex_attention.json").write_text("")
            for operation in operations:
                (root / device / f"{operation}.json").write_text(
                    json.dumps({json.dumps({"x": device}): {json.dumps({"block": 32}): {"evaluation_times_ms": [0.5]}}}))
        return root

    def test_tokamaxs_own_folder_is_imported_whole_and_its_empty_files_are_told(self):
        root = self.write_tokamax()
        for path in (root, f"{root}/", f"{root}//", root / "nvidia_h100" / ".."):
            self.use_new_store()
            answer = self.hone("store", "import", str(path), "--format", "tokamax", "--json")
            self.assertEqual(answer.json["foreign"], 3)
            for device in ("nvidia_h100", "tpu7x"):
                self.assertIn(f"{device}/flex_attention.json: is empty, passed over", answer.err)
            out = self.folder / "out"
            files = self.hone("store", "export", f"{out}/", "--format", "tokamax", "--json").json["files"]
            self.assertEqual(sorted(files), ["nvidia_h100/normalization.json", "nvidia_h100/ragged_dot.json",
                                             "tpu7x/normalization.json"])

    def test_a_slash_behind_a_device_changes_nothing(self):
        root = self.write_tokamax()
        for ending in ("", "/", "//", "/."):
            self.use_new_store()
            for device in ("nvidia_h100", "tpu7x"):
                self.hone("store", "import", f"{root}/{device}{ending}", "--format", "tokamax")
            self.hone("store", "import", f"{root}/tpu7x//normalization.json")
            out = self.folder / "out"
            files = self.hone("store", "export", f"{out}/", "--format", "tokamax", "--json").json["files"]
            self.assertEqual(sorted(files), ["nvidia_h100/normalization.json", "nvidia_h100/ragged_dot.json",
                                             "tpu7x/normalization.json"])

    def test_files_of_several_devices_are_not_made_one(self):
        root = self.write_tokamax()
        self.hone("store", "import", str(root), "--format", "tokamax")
        for out in (str(self.folder / "caches"), "-"):
            self.refused("store", "export", out, "--format", "tokamax", says=["a file for each device and operation", "name a folder"])
        self.assertFalse((self.folder / "caches").exists())

    def test_a_damaged_file_of_tokamaxs_keeps_no_other_out_and_is_no_success(self):
        root = self.write_tokamax()
        (root / "nvidia_h100" / "damaged.json").write_text('{"{\\"x\\":{"num": 1}}": {}}')
        answer = self.hone("store", "import", str(root), "--format", "tokamax", "--json", code=NO)
        self.assertEqual(answer.json["foreign"], 3)
        self.assertIn("damaged.json: not JSON", answer.err)

    def caches_of(self, root):
        """What a folder's files hold, by their paths; tokamax itself cannot read those that are no JSON."""
        caches, damaged = {}, []
        for path in sorted(root.rglob("*.json")):
            name = str(path.relative_to(root))
            try:
                if text := path.read_text():
                    caches[name] = json.loads(text)
            except json.JSONDecodeError:
                damaged.append(name)
        return caches, damaged

    def test_all_that_tokamax_ships_goes_in_and_comes_out_equal(self):
        if not TOKAMAX.is_dir():
            self.skipTest("tokamax is not installed: scripts/setup python")
        caches, damaged = self.caches_of(TOKAMAX)
        self.assertGreater(len(caches), 30)
        devices = sorted({name.split("/")[0] for name in caches})
        for paths in ([str(TOKAMAX)], [f"{TOKAMAX}/"], [f"{TOKAMAX}/{device}/" for device in devices]):
            self.use_new_store()
            out = self.folder / f"out{len(paths)}"
            shutil.rmtree(out, ignore_errors=True)
            answer = self.hone("store", "import", *paths, "--format", "tokamax", "--json", code=NO if damaged else DONE)
            self.assertEqual(answer.json["foreign"], sum(len(cache) for cache in caches.values()))
            for name in damaged:
                self.assertIn(f"{name}: not JSON", answer.err)
            self.hone("store", "export", f"{out}/", "--format", "tokamax")
            self.assertEqual(self.caches_of(out), (caches, []))

    def test_an_import_of_nothing_is_no_success(self):
        empty = self.folder / "nothing"
        empty.mkdir()
        (empty / "flex_attention.json").write_text("")
        (empty / "notes.txt").write_text("hello")
        for arguments in ([str(empty), "--format", "tokamax"], [str(empty / "flex_attention.json"), "--format", "tokamax"], [str(empty)]):
            self.assertIn("nothing was imported", self.hone("store", "import", *arguments, code=NO).err)

    def test_wrong_use_is_refused(self):
        self.refused("store", "import", says="files")
        self.refused("store", "import", "x.json", "--format", "xml", says=["xml", "tokamax"])
        self.refused("store", "import", "nowhere.json", code=WORLD, says="nowhere.json")
        self.refused("store", "export", says="file or a folder")
        self.refused("store", "export", "/proc/nowhere/x.json", code=WORLD, says="/proc/nowhere")


class Bundle(ExchangeTest):
    def test_what_is_exported_is_imported_whole(self):
        self.put(self.document())
        self.put(self.document(NORM_NEAR))
        self.imported("-", input='{"d|o@v1|k": {"a": NaN}}')
        bundle = self.folder / "bundle.json"
        self.hone("store", "export", str(bundle), "--measurements")
        other = self.url("other")
        self.assertEqual(self.imported(bundle, "--store", other)["taken"], 2)
        rows = self.hone("store", "list", "--json").lines
        self.assertEqual(self.hone("store", "list", "--json", "--store", other).lines, rows)
        self.assertEqual(self.hone("store", "export", "-", "--store", other).out, self.hone("store", "export", "-").out)
        self.hone("store", "diff", other)
        self.hone("store", "diff", str(bundle))

    def test_one_device_alone_can_be_exported_and_put(self):
        self.put(self.document())
        document = self.document(NORM_NEAR)
        self.put(dict(document, device="cpu|other"))
        bundle = self.hone("store", "export", "-", "--device", "cpu|other").json
        self.assertEqual((bundle["device"], len(bundle["entries"])), ("cpu|other", 1))
        self.assertEqual(self.put(bundle, env={"HONE_STORE": self.url("other")}).json, {"stored": 1})

    def test_a_device_without_decisions_and_a_name_of_none_are_refused_and_nothing_is_written(self):
        self.put(self.document())
        for device, code, says in (("cpu|other", NO, "no decision for cpu|other"), ("cpu", USAGE, "hone devices")):
            self.refused("store", "export", "out.json", "--device", device, code=code, says=says)
            self.refused("store", "export", "-", "--device", device, code=code, says=says)
        self.assertFalse((self.folder / "out.json").exists())
        whole = self.hone("store", "export", "-").out
        for device in ("here", "cpu:0"):
            self.assertEqual(self.hone("store", "export", "-", "--device", device).out, whole)

    def test_put_takes_a_document_of_several_devices_and_keeps_each_under_its_own(self):
        self.put(self.document())
        self.put(dict(self.document(NORM_NEAR), device="cpu|other"))
        bundle = self.hone("store", "export", "-").json
        other = {"HONE_STORE": self.url("other")}
        self.assertEqual(self.put(bundle, env=other).json, {"stored": 2})
        self.assertEqual(self.hone("store", "export", "-", env=other).json["entries"], bundle["entries"])


class Merge(ExchangeTest):
    def test_the_better_of_two_stays_and_nothing_is_lost(self):
        other = self.url("other")
        self.put(self.document(evidence={"time_ns": 50, "samples": 3}))
        self.put(self.document(evidence={"time_ns": 90, "samples": 30}), env={"HONE_STORE": other})
        self.put(self.document(NORM_NEAR), env={"HONE_STORE": other})
        answer = self.hone("store", "merge", other, "--json").json
        self.assertEqual((answer["taken"], answer["kept"], answer["refused"]), (2, 0, 0))
        self.assertEqual(self.stat()["decisions"], 2)
        self.assertEqual(self.hone("store", "get", NORM, "--json").json["evidence"]["time_ns"], 90)
        self.assertEqual(self.hone("store", "merge", other, "--json").json["equal"], 2)

    def test_stores_that_are_not_there_are_not_made(self):
        for url in (self.url("nowhere"), f"json:{self.folder}/nowhere"):
            self.refused("store", "merge", url, code=WORLD, says="no such store")
            self.refused("store", "diff", url, code=WORLD, says="no such store")
        self.refused("store", "merge", says="URLs")
        self.assertFalse((self.folder / "nowhere.db").exists())

    def test_choices_that_differ_are_shown_and_answered_no(self):
        other = self.url("other")
        self.put(self.document())
        self.put(self.document(kernel="reference", config={}), env={"HONE_STORE": other})
        self.put(self.document(NORM_NEAR), env={"HONE_STORE": other})
        answer = self.hone("store", "diff", other, "--json", code=NO).json["differences"]
        self.assertEqual(sorted(row["difference"] for row in answer), ["choice", "right"])
        changed = next(row for row in answer if row["difference"] == "choice")
        self.assertEqual((changed["left"]["kernel"], changed["right"]["kernel"]), ("portable", "reference"))
        self.assertIn("+ native/reference", self.hone("store", "diff", other, code=NO).out)

    def test_pruning_takes_what_cannot_be_served(self):
        self.put(self.document())
        self.put(self.document(NORM_NEAR, kernel="abacus"))
        self.assertEqual(self.hone("store", "prune", "--dry-run", "--json").json["decisions"], 1)
        self.assertEqual(self.stat()["decisions"], 2)
        self.assertEqual(self.hone("store", "prune", "--json").json["decisions"], 1)
        self.assertEqual([row["call"] for row in self.hone("store", "list", "--json").lines], [NORM])


class RecordExport(ExchangeTest):
    def test_what_was_recorded_is_exported_and_imported(self):
        self.hone("record", "import", str(DATA / "golden" / "lowered" / "many.recorded.json"))
        path = self.folder / "record.json"
        answer = self.hone("record", "export", str(path), "--json").json
        rows = json.loads(path.read_text())["invocations"]
        self.assertEqual(answer, {"exported": len(rows)})
        self.assertEqual(self.hone("record", "export").json["invocations"], rows)
        other = {"HONE_STORE": self.url("other")}
        self.hone("record", "import", str(path), env=other)
        self.assertEqual(self.hone("record", "export", "-", env=other).json["invocations"], rows)
        self.refused("record", "export", "a", "b", says="record export takes no b")


class JsonStores(ExchangeTest):
    def test_every_verb_works_on_a_folder_and_on_a_file(self):
        for url in (f"json:{self.folder}/team", f"json:{self.folder}/one.json"):
            env = {"HONE_STORE": url}
            with self.subTest(url):
                self.put(self.document(), env=env)
                self.assertEqual(self.hone("explain", NORM, "--json", env=env).json["source"], "store")
                self.assertEqual(len(self.hone("store", "list", "--json", env=env).lines), 1)
                self.assertEqual(self.hone("store", "remove", NORM, "--json", env=env).json, {"removed": 1})
                self.hone("store", "get", NORM, code=NO, env=env)

    def test_a_damaged_entry_is_a_miss_and_the_others_answer(self):
        env = {"HONE_STORE": f"json:{self.folder}/team"}
        self.put(self.document(), env=env)
        self.put(self.document(NORM_NEAR), env=env)
        path = self.folder / "team" / "rms_norm.json"
        lines = path.read_text().splitlines(keepends=True)
        broken = next(i for i, line in enumerate(lines) if json.dumps(NORM)[1:-1] in line)
        lines[broken] = lines[broken].replace('"portable"', '"portoble"')
        path.write_text("".join(lines))
        self.assertEqual(self.hone("explain", NORM, "--json", env=env).json["source"], "heuristic")
        self.assertEqual(self.hone("explain", NORM_NEAR, "--json", env=env).json["source"], "store")
        answer = self.hone("store", "verify", "--json", code=NO, env=env)
        self.assertEqual((answer.json["records"], answer.json["set_aside"], answer.json["quarantined"]), (1, 1, 1))
        self.assertIn("checksum", answer.json["quarantine"][0]["reason"])
        self.assertIn("1 lines are damaged", answer.err)
        self.assertEqual(self.hone("store", "prune", "--json", env=env).json["quarantined"], 1)
        self.hone("store", "verify", env=env)
        path.write_text(path.read_text()[:-40])
        self.hone("explain", NORM_NEAR, "--json", env=env)
        self.refused("store", "verify", code=WORLD, says="rms_norm.json is damaged", env=env)

    def test_a_sound_store_verifies(self):
        self.put(self.document())
        self.assertEqual(self.hone("store", "verify", "--json").json["quarantined"], 0)
        self.assertIn("1 sound", self.hone("store", "verify").out)
