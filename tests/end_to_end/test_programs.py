"""hone offline: real programs that JAX lowered with ejkernel's labels in them."""

import hashlib
import json
import re

from support import DATA, DONE, NO, NULL, USAGE, WORLD, CommandTest

PROGRAMS = DATA / "golden" / "lowered"
MANY = str(PROGRAMS / "many.mlir")
RECORDED = str(PROGRAMS / "many.recorded.json")
CONTROL = str(PROGRAMS / "control.mlir")


def recorded_keys(name):
    rows = json.loads((PROGRAMS / f"{name}.recorded.json").read_text())["invocations"]
    return {row["key"] for row in rows}


class Programs(CommandTest):
    def listed(self, path=MANY, **options):
        return self.hone("offline", "--list", "--json", path, **options).json

    def test_every_label_is_found(self):
        for name in ("many", "control"):
            document = self.listed(str(PROGRAMS / f"{name}.mlir"))
            self.has_fields(document, {"program": str, "dialect": str, "form": str, "operations": list})
            self.assertEqual(document["dialect"], "stablehlo")
            self.assertEqual({row["key"] for row in document["operations"]}, recorded_keys(name))
            for row in document["operations"]:
                self.has_fields(row, {"algorithm": str, "version": (str, NULL), "key": (str, NULL), "label": str,
                                      "count": (int, NULL), "matched": str, "call": (str, NULL),
                                      "call_key": (str, NULL), "tunable": bool, "reason": (str, NULL),
                                      "where": str, "arrays": str})
                self.assertRegex(row["where"], rf"^(jit\(p_{name}\)|@)")
                self.assertRegex(row["arrays"], r"f(32|16)\[")
                self.assertEqual(row["tunable"], row["reason"] is None)
                if row["tunable"]:
                    self.assertEqual(self.hone("key", row["call"], "--json").json["key"], row["call_key"])

    def test_arguments_in_labels_hash_to_the_keys_that_were_recorded(self):
        programs = {"control_json.bc": 7, "control_json.hlo.txt": 7, "one_json.mlir": 1, "one_json.hlo.pb": 1,
                    "one_json.opt.hlo.txt": 1}
        known = recorded_keys("control")  # the one call of `one` is among them
        for name, count in programs.items():
            rows = self.listed(str(PROGRAMS / name))["operations"]
            self.assertEqual({row["matched"] for row in rows}, {"label"}, name)
            keys = {row["key"] for row in rows}
            self.assertEqual(len(keys), count, name)
            self.assertLessEqual(keys, known, name)

    def test_records_match_what_they_recorded(self):
        before = {row["key"]: row for row in self.listed()["operations"]}
        self.assertNotIn("recorded", {row["matched"] for row in before.values()})
        self.hone("record", "import", RECORDED)
        after = {row["key"]: row for row in self.listed()["operations"]}
        self.assertEqual({row["matched"] for row in after.values()}, {"recorded"})
        for key, row in before.items():  # what was proved without a record was right
            if row["matched"] == "proved":
                self.assertEqual(after[key]["call"], row["call"])

    def test_calls_are_counted_through_loops(self):
        self.assertTrue(any((row["count"] or 0) >= 3 for row in self.listed(CONTROL)["operations"]))

    def test_every_tunable_operation_is_tuned_and_found_again(self):
        self.hone("record", "import", RECORDED)
        operations = self.listed()["operations"]
        calls = {row["call"] for row in operations if row["tunable"]}
        document = self.hone("offline", MANY, "--seconds", "1", "--evals", "10", "--json").json
        self.assertEqual(document["hone_result"], 1)
        # A scale does not change speed: what is tuned serves every value of it.
        self.assertEqual({entry["call"] for entry in document["entries"]}, {call.replace(", softmax_scale=0.125", "") for call in calls})
        failed = {row["key"] for row in document.get("failed", [])}
        self.assertEqual(failed, {row["key"] for row in operations if not row["tunable"]})
        for call in calls:
            self.assertEqual(self.hone("explain", call, "--json").json["source"], "store")
        stat = self.stat()
        self.assertEqual(stat["aliases"], sum(row["tunable"] for row in operations))
        # A second run finds everything decided.
        again = self.hone("offline", MANY, "--seconds", "1", "--evals", "10", "--json").json
        self.assertEqual({entry["key"] for entry in again["entries"]}, {entry["key"] for entry in document["entries"]})
        self.assertEqual(self.stat()["measurements"], stat["measurements"])
        out = self.hone("offline", MANY, "--seconds", "1", "--evals", "10").out
        self.assertEqual(len(re.findall(r"^  decided already \(store\): \w+", out, re.M)), len(calls))
        self.assertIn("every call was decided already: nothing was measured", out)
        self.assertNotIn("spread", out)  # a column of a contest
        # And its result can be put into another store.
        other = f"sqlite:{self.folder}/other.db"
        stored = self.hone("store", "put", "--json", "--store", other, input=json.dumps(document)).json
        self.assertEqual(stored, {"stored": len(calls)})

    def test_what_could_not_be_stored_is_no_success(self):
        control = str(PROGRAMS / "one_json.mlir")
        out = self.hone("offline", control, "--seconds", "1", "--evals", "4").out
        self.assertIn("stored in sqlite:", out)
        (self.folder / "file").write_text("")
        nowhere = f"sqlite:{self.folder}/file/store.db"
        answer = self.hone("offline", control, "--seconds", "1", "--evals", "4", env={"HONE_STORE": nowhere}, code=NO)
        self.assertIn("going on without the store", answer.err)
        self.assertNotIn("stored in", answer.out)
        # By name it is what the command is asked for: nothing is measured, by tune neither.
        for command in (("offline", control), ("tune", "silu_mul(f32[4,4], f32[4,4])")):
            answer = self.hone(*command, "--seconds", "30", "--store", nowhere, code=WORLD)
            self.assertIn("is not a folder", answer.err)
            self.assertEqual(answer.out, "")

    def test_a_program_of_which_nothing_could_be_tuned_is_answered_with_no(self):
        body = "\n".join(f'%{i} = stablehlo.abs %arg0 : tensor<4xf32> loc("ejkernel_ops#nothing_of_hone@v1:{i:016x}")'
                         for i in range(1, 21))
        program = self.write("unknown.mlir", "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n" + body +
                             "\nreturn %1 : tensor<4xf32>\n}\n")
        listed = self.listed(program)["operations"]
        self.assertEqual((len(listed), any(row["tunable"] for row in listed)), (20, False))
        answer = self.hone("offline", program, "--json", code=NO)
        self.assertEqual((len(answer.json["failed"]), answer.json["entries"]), (20, []))
        self.assertEqual({row["key"] for row in answer.json["failed"]}, {row["key"] for row in listed})
        self.assertIn("none of its operations could be tuned", answer.err)
        self.hone("offline", "--list", program)  # shows them, and that is all it was asked
        empty = self.write("empty.mlir", "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                           "return %arg0 : tensor<4xf32>\n}\n")
        self.assertIn("has no labelled operation", self.hone("offline", empty, code=NO).err)

    def tokamax(self, *operations):
        """A program whose operations have tokamax's labels: (class, arguments)."""
        lines = []
        for i, (name, arguments) in enumerate(operations):
            label = json.dumps({"op": {"__type": f"tokamax._src.ops.x.base.{name}", "config": {}}, "arguments": arguments})
            lines.append(f'%{i + 1} = stablehlo.abs %arg0 : tensor<4xf32> loc("jit(f)/block{i}/tokamax:' +
                         label.replace('"', '\\22') + '/abs")')
        return self.write("tokamax.mlir", "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n" + "\n".join(lines) +
                          "\nreturn %1 : tensor<4xf32>\n}\n")

    def test_operations_of_tokamax_are_tuned_and_told_apart(self):
        array, preset = "f32[2,8,4,16]", ["BF16_BF16_F32", "BF16_BF16_F32"]
        attention = {"q": array, "k": array, "v": array, "precision": preset, "logits_dtype": "float32", "logits_scale": 0.25,
                     "bias": "f32[1,4,8,8]", "logits_soft_cap": None, "dropout_mask": None, "dropout_rate": 0.0,
                     "mask": {"bool_mask": "bool[2,1,1,8]", "q_start": None, "is_causal": False}, "normalize_output": True,
                     "return_residuals": False}
        unit = {"x": "f32[8,16]{vmap_axes=[[0,3]]}", "weights": "f32[16,2,24]{vmap_axes=[null]}", "precision": "BF16_BF16_F32",
                "activation": "jax._src.nn.functions.silu", "return_residuals": False}
        unknown = [("Convolution", {"x": array, "stride": stride}) for stride in (1, 2)]
        path = self.tokamax(("DotProductAttention", attention), ("GatedLinearUnit", unit), *unknown)
        rows = self.listed(path)["operations"]
        self.assertEqual([row["call"] for row in rows], [
            "dot_product_attention(f32[2,8,4,16], f32[2,8,4,16], f32[2,8,4,16], f32[1,4,8,8], bool[2,1,1,8])",
            'gated_linear_unit(f32[3,8,16], f32[16,2,24], activation="silu")', None, None])
        self.assertEqual([row["where"] for row in rows], [f"jit(f)/block{i}" for i in range(4)])
        self.assertEqual(rows[3]["label"]["arguments"], {"x": array, "stride": 2})
        table = self.hone("offline", "--list", path).out.splitlines()
        self.assertEqual(len(set(table)), len(table))
        self.assertIn("Convolution(x=f32[2,8,4,16], stride=2): hone has no algorithm named 'Convolution'", table[-1])
        answer = self.hone("offline", path, "--seconds", "1", "--evals", "4", "--json", code=NO)
        self.assertEqual(len(answer.json["entries"]), 2)
        self.assertEqual([row["reason"] for row in answer.json["failed"]], ["hone has no algorithm named 'Convolution'"] * 2)
        self.assertEqual(len({row["key"] for row in answer.json["failed"]}), 2)  # their labels
        self.assertIn("2 of its 4 operations could not be tuned", answer.err)
        self.hone("offline", path, "--seconds", "1", "--evals", "4", "--allow-missing")

    def test_attention_with_all_that_labels_say_is_verified_by_every_kernel(self):
        arrays = "bf16[2,19,4,24], bf16[2,33,2,24], bf16[2,33,2,17]"
        said = ("bias=bf16[2,4,19,33], causal=true", "bias=f32[1,4,1,33], mask=bool[2,1,1,33], softmax_scale=0.3",
                "bias=f32[1,1,19,1], window_left=3, window_right=7, logits_soft_cap=5.0", "mask=i32[1,4,19,33], window_left=0",
                "mask=bool[2,4,19,1], q_segment_ids=i32[2,19], kv_segment_ids=i32[2,33], causal=true")
        # With weights a mask counts only where there is no bias.
        calls = [f"dot_product_attention({arrays}, {options})" for options in said]
        calls += [f"biased_attention({arrays}, {options})" for options in said[1:2] + said[3:]]
        for call in calls:
            with self.subTest(call):
                out = self.hone("tune", call, "--seconds", "2", "--evals", "9", "--no-store").out
                self.assertIn("verified against reference", out)
                self.assertIn(" 0 rejected", out)

    def test_a_pack_brings_foreign_operations(self):
        pack = self.folder / "pack"
        pack.mkdir()
        rows = [{"library": "tokamax", "operation": "Convolution", "values": {"stride": [1, 2]},
                 "takes": [{"algorithm": "softmax", "arguments": {"input": "x"}}]}]
        (pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "rows", "foreign": rows}))
        path = self.tokamax(("Convolution", {"input": "f32[4,8]", "stride": 2}))
        self.hone("offline", path, "--seconds", "1", "--evals", "2", code=NO)
        document = self.hone("offline", path, "--pack", str(pack), "--seconds", "1", "--evals", "2", "--json").json
        self.assertEqual([entry["call"] for entry in document["entries"]], ["softmax(f32[4,8])"])

    def test_a_row_of_a_pack_leaves_what_it_cannot_hold_to_the_row_that_is_built_in(self):
        pack = self.folder / "pack"
        pack.mkdir()
        rows = [{"library": "tokamax", "operation": "Normalization", "values": {"subtract_mean": [True], "axis": [-1]},
                 "takes": [{"algorithm": "softmax"}]}]
        (pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "rows", "foreign": rows}))
        norm = {"x": "f32[8,16]", "scale": "f32[16]", "axis": -1, "subtract_mean": False, "epsilon": 1e-6}
        path = self.tokamax(("Normalization", norm), ("Normalization", {"x": "f32[8,16]", "axis": -1, "subtract_mean": True}))
        operations = self.hone("offline", path, "--pack", str(pack), "--list", "--json").json["operations"]
        self.assertEqual([row["call"] for row in operations], ["rms_norm(f32[8,16], f32[16])", "softmax(f32[8,16])"])

    def test_a_row_that_leads_nowhere_is_told_when_its_pack_is_checked(self):
        pack = self.folder / "pack"
        pack.mkdir()
        for take, says in (({"algorithm": "nosuch"}, "no algorithm named 'nosuch'"),
                           ({"algorithm": "softmax", "arguments": {"input": "y2"}}, "its argument input goes to 'y2', which softmax does not have"),
                           ({"algorithm": "softmax", "arguments": {"input": "x"}}, None)):
            rows = [{"library": "tokamax", "operation": "Convolution", "takes": [take]}]
            (pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "rows", "foreign": rows}))
            answer = self.hone("pack", "check", str(pack), code=DONE if says is None else NO)
            self.assertEqual("foreign operation Convolution" in answer.out, says is not None)
            self.assertIn(says or "", answer.out)

    def test_recorded_calls_of_ejkernel_are_what_its_labels_are(self):
        """By the same rows: with a bias or a window of two sides another algorithm than that of their name."""
        kwargs = {"query": {"dtype": "float32", "shape": [1, 8, 2, 16]}, "key": {"dtype": "float32", "shape": [1, 8, 2, 16]},
                  "value": {"dtype": "float32", "shape": [1, 8, 2, 16]}, "causal": False, "dropout_prob": 0.0}
        rows = []
        for more in ({}, {"sliding_window": [3, 4]}, {"bias": {"dtype": "float32", "shape": [1, 2, 8, 8]}}, {"dropout_prob": 0.5}):
            spec = json.dumps({"args_spec": [], "batch_axes": None, "kwargs_spec": {**kwargs, **more}, "method": None},
                              sort_keys=True, separators=(",", ":"))
            rows.append({"op": "flash_attention@v2", "key": hashlib.sha256(spec.encode()).hexdigest()[:16], "spec": spec})
        self.hone("record", "import", self.write("calls.json", json.dumps({"device": "cpu|cpu", "invocations": rows})))
        document = self.hone("tune", "--recorded", "--seconds", "1", "--evals", "2", "--json", code=WORLD).json
        array = "f32[1,8,2,16]"
        self.assertEqual({entry["call"] for entry in document["entries"]},
                         {f"flash_attention({array}, {array}, {array})", f"dot_product_attention({array}, {array}, {array}, f32[1,2,8,8])",
                          f"dot_product_attention({array}, {array}, {array}, window_left=3, window_right=4)"})
        self.assertEqual([row["key"] for row in document["failed"]], [rows[3]["key"]])
        self.assertIn("dropout_prob is 0.5", document["failed"][0]["reason"])
        found = self.hone("store", "get", f"flash_attention@v2:{rows[1]['key']}", "--json").json
        self.assertIn("window_left=3", found["call"])
        self.assertIn("window_left=3", self.hone("record", "list").out)

    def test_an_algorithm_of_the_operations_name_needs_no_row(self):
        """Its class is the algorithm's name, its arguments are the parameters."""
        path = self.tokamax(("Saxpy", {"x": "f32[1000]", "y": "f32[1000]", "alpha": 3.5, "precision": ["DEFAULT", "DEFAULT"],
                                       "return_residuals": False}))
        out = self.hone("offline", "--list", path).out
        self.assertIn("hone has no algorithm named 'Saxpy'", out)
        pack = str(DATA.parent / "examples" / "packs" / "saxpy")
        document = self.hone("offline", path, "--pack", pack, "--seconds", "1", "--evals", "3", "--json").json
        self.assertEqual([entry["call"] for entry in document["entries"]], ["saxpy(f32[1000], f32[1000], alpha=3.5)"])

    def test_ci_sees_which_operation_the_store_lacks(self):
        path = self.tokamax(("GatedLinearUnit", {"x": "f32[8,16]", "weights": "f32[16,2,8]"}))
        answer = self.hone("offline", "--expect-all", path, code=NO)
        self.assertIn("missing: GatedLinearUnit at jit(f)/block0: gated_linear_unit(f32[8,16], f32[16,2,8]): answered by heuristic", answer.out)
        self.hone("offline", path, "--seconds", "1", "--evals", "2")
        self.assertIn("1 of 1 operations are decided in the store", self.hone("offline", "--expect-all", path).out)
        other = self.tokamax(("GatedLinearUnit", {"x": "f32[8,16]", "weights": "f32[16,2,9]"}))
        document = self.hone("offline", "--expect-all", "--json", other, code=NO).json
        self.assertEqual((document["hits"], [row["call"] for row in document["missing"]]),
                         (0, ["gated_linear_unit(f32[8,16], f32[16,2,9])"]))
        self.refused("offline", "--expect-all", "--list", path, says="offline --expect-all takes no --list")

    def test_what_a_step_reads_once_is_measured_cold_where_no_cache_holds_a_step(self):
        l2, l3, threads = (int(re.search(rf"{name}=(\d+)", self.fingerprint()).group(1)) for name in ("l2", "l3", "threads"))
        if l3 == 0:
            self.skipTest("the size of the last cache is not known here")
        call = "matmul(bf16[1,64], bf16[64,64])"
        rows = (l3 + threads * l2) // 2000

        def program(rows):
            return self.write("step.mlir", f"""
func.func public @main(%x: tensor<1x64xbf16>, %w: tensor<64x64xbf16>, %v: tensor<{rows}x1000xbf16>) -> tensor<1x64xbf16> {{
  %0 = stablehlo.sine %x : tensor<1x64xbf16>
  %1 = stablehlo.custom_call @hone_call(%0, %w) {{hone_call = "{call}"}} : (tensor<1x64xbf16>, tensor<64x64xbf16>) -> tensor<1x64xbf16> loc("jit(f)/hone#matmul.v1:57a51cf74c5f0d37")
  %2 = stablehlo.sine %v : tensor<{rows}x1000xbf16>
  return %1 : tensor<1x64xbf16>
}}
""")
        document = self.listed(program(rows - 100))
        self.assertEqual([(row["regime"], row["once_bytes"]) for row in document["operations"]], [("warm", 8192)])
        path = program(rows + 100)
        document = self.listed(path)
        self.assertEqual(document["step_bytes"], (rows + 100) * 2000 + 8192 + 128)
        self.assertEqual([(row["regime"], row["once_bytes"]) for row in document["operations"]], [("cold", 8192)])
        out = self.hone("offline", path, "--seconds", "1", "--evals", "2").out
        self.assertIn(f"{call} reads 8.2 kB that nothing else of a step reads", out)
        self.assertIn(" measured cold, ", out)
        self.assertRegex(self.hone("explain", call).out, r"samples, cold\b")
        again = self.hone("offline", path, "--no-cold", "--seconds", "1", "--evals", "2", "--json").json
        self.assertEqual(again["entries"][0]["evidence"]["regime"], "warm")
        self.refused("offline", "--no-cold", "--cold", path, says="--no-cold goes without --cold")

    def test_ci_sees_each_call_of_one_decision_as_decided(self):
        norm = {"x": "f32[8,16]", "scale": "f32[16]", "offset": None, "axis": -1, "subtract_mean": False, "scale_offset": 0.0}
        path = self.tokamax(*(("Normalization", {**norm, "epsilon": epsilon}) for epsilon in (1e-5, 1e-6, 1e-3)))
        self.hone("offline", path, "--seconds", "1", "--evals", "2")
        self.assertIn("3 of 3 operations are decided in the store", self.hone("offline", "--expect-all", path).out)

    def test_the_table_names_what_cannot_be_tuned(self):
        out = self.hone("offline", "--list", MANY).out
        for row in self.listed()["operations"]:
            self.assertIn(row["key"], out)
            if not row["tunable"]:
                self.assertIn(row["reason"], out)

    def test_a_program_without_labels_says_so(self):
        path = self.write("none.mlir", "module @jit_f {\n  func.func public @main() {\n    return\n  }\n}\n")
        document = self.listed(path)
        self.assertEqual(document["operations"], [])
        self.assertIn("no labels", document["note"])

    def test_forms_that_are_not_read_yet_are_refused_by_name(self):
        forms = {"bytecode": b"ML\xefR\x0dStableHLO_v1.0.0\x00", "proto": b"\x0a\x05jit_f\x12\x04main" + bytes(64)}
        for name, data in forms.items():
            path = self.folder / name
            path.write_bytes(data)
            answer = self.hone("offline", "--list", str(path), code=None)
            self.assertIn(answer.code, (USAGE, WORLD), name)
            self.assertTrue(answer.err.startswith("hone: "), answer.err)

    def test_a_program_cut_short_is_read_as_far_as_it_is_sound(self):
        text = (PROGRAMS / "many.mlir").read_text()
        for share in (0.1, 0.5, 0.9, 0.99):
            path = self.write("cut.mlir", text[:int(len(text) * share)])
            answer = self.hone("offline", "--list", "--json", path, code=None)
            self.assertIn(answer.code, (DONE, WORLD))
            if answer.code == DONE:
                self.assertLessEqual({row["key"] for row in answer.json["operations"]} - {None}, recorded_keys("many"))

    def test_hostile_programs_are_refused_or_read_in_bounded_memory(self):
        hostile = {"empty": "", "zeros": "\0" * 4096, "brackets": "module {" * 100000, "locs": "#loc1 = loc(#loc1)\n" * 50000,
                   "words": "a" * (8 << 20), "open string": 'loc("ejkernel_ops#' + "x" * 100000}
        for name, text in hostile.items():
            with self.subTest(name):
                answer = self.hone("offline", "--list", "--json", self.write("hostile.mlir", text), code=None)
                self.assertIn(answer.code, (DONE, USAGE, WORLD))
        self.refused("offline", "nowhere.mlir", code=WORLD, says="nowhere.mlir")

    def test_one_bad_program_ends_nothing(self):
        answer = self.hone("offline", "--list", "--json", "nowhere.mlir", MANY, code=WORLD)
        self.assertEqual(len(answer.json["operations"]), 9)
        self.assertIn("nowhere.mlir", answer.err)
