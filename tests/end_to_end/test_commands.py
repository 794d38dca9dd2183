"""Commands that measure nothing: what they print, what they answer, and what bad input gets."""

import fcntl
import hashlib
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import termios
import unittest

from support import COMMAND, DATA, DONE, NO, NORM, NORM_NEAR, NULL, PRODUCT, QUICK, USAGE, WORLD, CommandTest

COMMANDS = ["devices", "list", "tune", "offline", "run", "bench", "ab", "explain", "key", "lock", "record", "stats", "store",
            "queue", "work", "sync", "report", "space", "pack", "doctor", "help"]


class Readers(CommandTest):
    def test_what_no_kernel_can_run_is_known_before_it_runs(self):
        answer = self.hone("run", "softmax(f32[8,64]{strides=64,-1})", env={"HONE_POLICY": "heuristic"})
        self.assertEqual(answer.err, "")

    def test_a_reader_that_stops_early_is_no_error(self):
        for command in ("list", "list --json", "help"):
            process = subprocess.Popen([COMMAND, *command.split()], env=self.environment({}), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            process.stdout.close()
            self.assertEqual((process.stderr.read(), process.wait()), ("", DONE))
            process.stderr.close()
        with open("/dev/full", "w") as full:
            answer = subprocess.run([COMMAND, "list"], env=self.environment({}), stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((answer.returncode, answer.stderr), (WORLD, "hone: standard output cannot be written\n"))


class Help(CommandTest):
    def test_help_lists_every_command(self):
        self.assertEqual(re.findall(r"(?m)^  ([a-z]+) ", self.hone("help").out), COMMANDS)

    def test_every_command_has_a_page(self):
        for name in COMMANDS:
            page = self.hone("help", name).out
            self.assertTrue(page.startswith(f"usage: hone {name} "), page)
            self.assertEqual(self.hone(name, "--help").out, page)
            self.assertNotRegex(page, r"(?m) $")
            other = "|".join(set(COMMANDS) - {name})
            self.assertNotRegex(page, rf"(?m)^  --.*; ({other})\b.*: ")  # what an option means elsewhere

    def test_the_environment_is_listed_with_its_present_values(self):
        out = self.hone("help", "environment", env={"HONE_POLICY": "fail"}).out
        for name in ("HONE_STORE", "HONE_POLICY", "HONE_FORCE", "HONE_DENY", "HONE_RECORD", "HONE_LOCK"):
            self.assertIn(name, out)
        self.assertIn("now: fail", out)
        self.assertIn("(unset)", out)

    def test_the_version_is_told(self):
        self.assertRegex(self.hone("--version").out, r"^hone \d+\.\d+\.\d+\n$")

    def test_no_command_is_wrong_use(self):
        self.assertIn("usage: hone COMMAND", self.hone(code=USAGE).out)

    def test_an_unknown_command_is_named(self):
        self.refused("tunes", says=["'tunes'", "did you mean tune?", "hone help"])
        self.refused("help", "tunes", says="'tunes'")
        self.assertNotIn("did you mean", self.refused("frobnicate").err)

    def test_what_was_probably_meant_is_named(self):
        for arguments, meant, code in (
                (["tune", NORM, "--second", "3", "--fersh"], "--fresh", USAGE), (["store", "lst"], "list", USAGE),
                (["list", "rms_nrom"], "rms_norm", NO), (["key", "sofmax(f32[4,4])"], "softmax", NO),
                (["tune", "matmull(f32[4,4], f32[4,4])"], "matmul", NO), (["tune", NORM, "--kernel", "potable"], "portable", USAGE),
                (["bench", NORM, "--choice", "avx21", "--choice", "default"], "avx2", USAGE)):
            with self.subTest(arguments):
                arguments = [word if word != "--second" else "--seconds" for word in arguments]
                self.refused(*arguments, code=code, says=f"did you mean {meant}?")

    def test_an_abbreviated_option_is_refused(self):
        for arguments in (["--sec", "3"], ["--sec=3"]):
            self.refused("tune", NORM, *arguments, says="--sec is an abbreviation: write --seconds")
        self.hone("devices", "--json")

    def test_an_unknown_option_is_named(self):
        self.refused("devices", "--fast", says=["--fast", "hone help devices"])
        self.refused("key", "--seconds", "3", NORM, says="--seconds")

    def test_an_option_without_its_value_is_named(self):
        self.refused("tune", NORM, "--seconds", says=["--seconds", "value"])

    def test_a_value_that_is_no_number_is_shown(self):
        self.refused("tune", NORM, "--seconds", "soon", says=["soon", "seconds"])
        self.refused("tune", NORM, "--evals", "-1", says="-1")
        self.refused("space", "-", "--sample", "many", says="many")

    def test_a_wrong_number_of_arguments_shows_the_usage(self):
        self.refused("run", says="hone run")
        self.refused("run", NORM, NORM, says="hone run")
        self.refused("devices", "cpu", says="hone devices")
        self.refused("offline", says="PROGRAM")
        self.refused("tune", says="--recorded")

    def test_options_stand_before_or_after_arguments(self):
        self.assertEqual(self.hone("key", "--json", NORM).out, self.hone("key", NORM, "--json").out)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            for arguments in (["devices", "--json"], ["--version"], ["tune", "--help"]):
                process = self.start(*arguments, stdout=full)
                _, err = process.communicate(timeout=300)
                self.assertEqual(process.returncode, WORLD, arguments)
                self.assertIn("standard output", err)

    def test_colour_and_progress_are_for_terminals(self):
        for arguments in (["devices"], ["list"], ["help"], ["explain", NORM]):
            answer = self.hone(*arguments)
            self.assertNotIn("\033", answer.out + answer.err)


class Widths(CommandTest):
    """Text fits the terminal; into a pipe a row is one line."""

    def widest(self, *arguments, columns=None):
        out = self.hone(*arguments, env={"COLUMNS": columns}, code=None).out
        return max(map(len, out.splitlines()), default=0)

    def test_every_table_fits_the_terminal(self):
        self.hone("tune", PRODUCT, *QUICK)
        for command in (["devices"], ["list"], ["list", "--all"], ["store", "list"], ["store", "stat"], ["explain", PRODUCT],
                        ["explain", PRODUCT, "--all"], ["doctor"], ["help"], ["help", "tune"], ["queue", "list"], ["record", "list"],
                        ["bench", PRODUCT, "--seconds", "0.1"], ["tune", PRODUCT], ["tune", PRODUCT, "--fresh", "--no-store", *QUICK]):
            for columns in ("80", "120"):
                with self.subTest(command, columns=columns):
                    self.assertLessEqual(self.widest(*command, columns=columns), int(columns))

    def test_a_narrow_terminal_moves_columns_below_and_loses_no_word(self):
        self.hone("tune", PRODUCT, *QUICK)
        wide, narrow = (self.hone("store", "list", env={"COLUMNS": columns}).out for columns in (None, "60"))
        self.assertLessEqual(max(map(len, narrow.splitlines())), 60)
        self.assertGreater(narrow.count("\n"), wide.count("\n"))
        self.assertEqual(sorted("".join(narrow.split())), sorted("".join(wide.split())))

    def test_a_pipe_breaks_no_line(self):
        self.hone("tune", PRODUCT, *QUICK)
        head, row, device = self.hone("store", "list").out.splitlines()
        self.assertTrue(row.startswith("matmul ") and row.endswith(PRODUCT), row)


    def test_progress_stays_on_one_line_and_never_says_that_nothing_is_left(self):
        columns = 50
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        process = subprocess.Popen([COMMAND, "tune", PRODUCT, "--seconds", "2"], env=self.environment({}), stdout=subprocess.DEVNULL,
                                   stderr=slave)
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 4096):
                shown += part
        except OSError:  # the terminal of a process that has ended
            pass
        os.close(master)
        self.assertEqual(process.wait(), DONE)
        lines = shown.decode().split("\r\033[K")
        self.assertGreater(len(lines), 3)
        self.assertLess(max(map(len, lines)), columns)
        self.assertNotIn("\n", shown.decode())
        self.assertNotIn(" 0 s left", shown.decode())


class Elsewhere(CommandTest):
    """What cannot run here is one line; --all has the reasons, and so has every document."""

    LINE = r"(?m)^ +\d+ kernels are for other devices or calls, or need what is not installed \(--all shows why\)$"

    def test_list_counts_what_cannot_run_here(self):
        short, whole = self.hone("list", "matmul").out, self.hone("list", "matmul", "--all").out
        self.assertRegex(short, self.LINE)
        self.assertNotIn("cuda_wgmma", short)
        self.assertRegex(whole, r"(?m)^   not here: .*cuda_wgmma.*: the cuda platform needs ")

    def test_a_kernel_whose_library_is_missing_is_not_here(self):
        rows = {row["name"]: row for row in self.hone("list", "matmul", "--json").json["algorithms"][0]["kernels"]}
        self.assertEqual((rows["onednn3"]["runs_here"], rows["onednn3"]["reason"]), (False, "the library that it calls is not installed"))
        self.assertNotIn("numpy_openblas", self.hone("list", "matmul").out)

    def test_what_the_kernel_that_was_found_refuses_is_not_tuned(self):
        call = "softmax(f32[3,30], scale=inf)"  # a decision is for all scales
        self.assertRegex(self.hone("tune", call, *QUICK, code=1).err, r"none of the kernels for softmax\(f32\[3,30\]\) supports softmax\(.*scale=inf\)")
        self.hone("tune", "softmax(f32[3,30], scale=0.5)", *QUICK)

    def test_kernels_that_fail_alike_are_named_with_one_reason(self):
        told = self.hone("tune", "matmul(f32[2,2], f32[2,2], activation=gelu)", code=1).err
        self.assertRegex(told, r"portable_decode, portable: activation is 'gelu', expected relu, gelu_tanh, gelu_erf or silu")
        self.assertEqual(told.count("is a kernel of platform cuda"), 1)

    def test_tune_and_explain_count_them_too_and_the_document_has_each(self):
        document = self.hone("tune", PRODUCT, *QUICK, "--json").json
        away = [row for row in document["entries"][0]["evidence"]["kernels"] if row.get("elsewhere")]
        self.assertTrue(all(row["reason"] and row["tried"] == 0 for row in away))
        out = self.hone("tune", PRODUCT, *QUICK, "--fresh").out
        self.assertIn(f"  {len(away)} kernels are for other devices", out)
        self.assertNotIn("not competing: opencl", out)
        self.assertRegex(self.hone("tune", PRODUCT, *QUICK, "--fresh", "--all").out, r"not competing: .*cuda_wgmma")
        text = self.hone("explain", PRODUCT).out
        self.assertRegex(text, self.LINE)
        self.assertNotIn("cuda_wgmma", text)


class Devices(CommandTest):
    def test_each_platform_has_devices_or_a_reason(self):
        platforms = self.hone("devices", "--json").json["platforms"]
        self.assertEqual(platforms[0]["platform"], "native")
        names = [row["platform"] for row in platforms]
        for name in ("opencl", "cuda", "triton", "cute", "tilelang", "xla", "pallas", "ffi", "python"):
            self.assertIn(name, names)
        for row in platforms:
            self.has_fields(row, {"platform": str, "available": bool, "reason": (str, NULL), "devices": list})
            self.assertEqual(row["available"], row["reason"] is None)
            if row["platform"] != "tilelang":  # whose kernels run on native's device
                self.assertEqual(row["available"], len(row["devices"]) > 0)
            for device in row["devices"]:
                self.has_fields(device, {"name": str, "fingerprint": str, "backend": str, "threads": int})

    def test_the_fingerprint_is_one_word_and_stays_the_same(self):
        self.assertRegex(self.fingerprint(), r"^cpu\|[^|\s]+$")
        self.assertEqual(self.fingerprint(), self.fingerprint())


class List(CommandTest):
    def test_each_kernel_says_whether_it_runs_here(self):
        algorithms = self.hone("list", "--json").json["algorithms"]
        self.assertLessEqual({"matmul", "rms_norm", "softmax", "flash_attention"}, {row["name"] for row in algorithms})
        for algorithm in algorithms:
            self.has_fields(algorithm, {"name": str, "version": str, "signature": str, "kernels": list})
            self.assertTrue(algorithm["signature"].startswith(algorithm["name"]))
            for kernel in algorithm["kernels"]:
                self.has_fields(kernel, {"name": str, "platform": str, "backend": str, "priority": int, "space": int,
                                         "runs_here": bool, "reason": (str, NULL)})
                self.assertEqual(kernel["runs_here"], kernel["reason"] is None)
            self.assertIn("reference", [kernel["name"] for kernel in algorithm["kernels"]])

    def test_one_algorithm_can_be_asked_for(self):
        algorithms = self.hone("list", "rms_norm", "--json").json["algorithms"]
        self.assertEqual([row["name"] for row in algorithms], ["rms_norm"])
        self.assertEqual(self.hone("list", "RMS_Norm", "--json").json["algorithms"], algorithms)

    def test_an_unknown_algorithm_lists_those_there_are(self):
        self.refused("list", "rms_nrom", code=NO, says=["rms_nrom", "rms_norm", "matmul"])

    def test_all_signatures_agree(self):
        self.assertEqual(self.hone("list", "--validate", "--json").json, {"valid": True})
        self.assertIn("agree", self.hone("list", "--validate").out)


class Key(CommandTest):
    def test_the_key_is_the_hash_of_the_canonical_text(self):
        answer = self.hone("key", NORM, "--json").json
        self.assertEqual(answer["key"], hashlib.sha256(answer["spec"].encode()).hexdigest()[:16])
        spec = json.loads(answer["spec"])
        self.assertEqual(spec["kwargs_spec"]["x"], {"dtype": "float32", "shape": [4, 256]})
        self.assertEqual(self.hone("key", NORM).out, f"{answer['key']}\n{answer['spec']}\n")

    def test_a_call_has_one_key_however_it_is_written(self):
        key = self.hone("key", NORM).out
        for text in ("rms_norm(x=f32[4,256], weight=f32[256])", "rms_norm( f32[4, 256],f32[256],eps=1e-06 )",
                     "RMS_NORM@v1(f32[4,256], f32[256], eps=0.000001) @cpu:0"):
            self.assertEqual(self.hone("key", text).out, key, text)
        self.assertNotEqual(self.hone("key", "rms_norm(f32[4,256], f32[256], eps=1e-5)").out, key)

    def test_a_canonical_text_gives_its_key(self):
        answer = self.hone("key", NORM, "--json").json
        path = self.write("spec.json", answer["spec"] + "\n")
        self.assertEqual(self.hone("key", "--spec", path, "--json").json, answer)
        self.assertEqual(self.hone("key", "--spec", "-", "--json", input=answer["spec"]).json, answer)

    def test_a_call_and_a_text_are_not_asked_for_together(self):
        self.refused("key", says="--spec")
        self.refused("key", NORM, "--spec", "-", says="--spec")
        self.refused("key", "--spec", "missing.json", code=WORLD, says="missing.json")

    def test_a_wrong_call_says_what_came_and_what_was_expected(self):
        wrong = {
            "matmul(f32[2,3], f32[4,5])": ["b[0] is 4", "k is 3", "a[1]"],
            "matmul(f32[2,3])": ["b is missing"],
            "matmul(f33[2,3], f32[3,4])": ["f33", "dtype"],
            "matmul(i32[2,3], i32[3,4])": ["a is i32", "f64"],
            "matmul(f32[5,2,3], f32[3,4])": ["b has 0 leading dims"],
            "matmul(f32[3], f32[3,4])": ["f32[3]", "axis of size 1"],
            "matmul(f32[2,3], f16[3,4])": ["b is f16", "T is f32"],
            "matmul(f32[2,3], f32[3,4], transpose=true)": ["'transpose'", "parameter"],
            "matmul(f32[2,3], f32[3,4], transpose_b=1)": ["transpose_b", "bool"],
            "matmul(f32[2,3], f32[3,4]": ["offset 25", "')'"],
            "matmul(f32[2,3], f32[3,4]) @gpu:x": ["offset"],
            "matmul(f32[2,3]{strides=1}, f32[3,4])": ["stride"],
            "flash_attention(f32[1,8,6,16], f32[1,8,4,16], f32[1,8,4,16])": ["heads % kv_heads == 0", "6", "4"],
            "": ["expected"],
            "()": ["expected"],
        }
        for call, says in wrong.items():
            self.refused("key", call, says=says)

    def test_an_unknown_algorithm_is_no_answer(self):
        self.refused("key", "matmal(f32[2,3], f32[3,4])", code=NO, says=["matmal", "matmul"])
        self.refused("key", "matmul@v7(f32[2,3], f32[3,4])", code=NO, says="matmul@v7")

    def test_a_device_that_is_not_there_is_named(self):
        self.refused("explain", f"{NORM} @cuda:0", code=WORLD, says="hone devices")

    def test_hostile_calls_are_refused_in_bounded_time(self):
        self.refused("key", "matmul(" + "f32[1]," * 15000 + "f32[1])")
        self.refused("key", "matmul(f32[9223372036854775807,9223372036854775807], f32[2,2])")
        self.refused("key", "matmul(f32[-1,2], f32[2,2])", says="-1")
        self.refused("key", "matmul" + "(" * 50000)
        self.refused("key", "\xff\xfe(f32[1])", code=NO, says="no algorithm")


class Space(CommandTest):
    TEXT = "block_m: 16..128 *2 default 32\nblock_n: 16..128 *2\nlayout: row | col\nwhere block_m * block_n <= 2048\n"

    def test_a_space_is_counted(self):
        answer = self.hone("space", self.write("s.txt", self.TEXT), "--json").json
        self.assertEqual((answer["count"], answer["cartesian"]), (20, 32))
        self.assertEqual([row["name"] for row in answer["parameters"]], ["block_m", "block_n", "layout"])
        self.assertEqual(answer["parameters"][0]["values"], [16, 32, 64, 128])
        self.assertEqual(answer["parameters"][2]["values"], ["row", "col"])
        self.assertIn("20 valid configs of 32", self.hone("space", "-", input=self.TEXT).out)

    def test_its_configs_are_listed_and_sampled(self):
        listed = self.hone("space", "--list", "-", input=self.TEXT).out.splitlines()
        self.assertEqual(len(set(listed)), 20)
        sample = self.hone("space", "--sample", "5", "--seed", "3", "-", input=self.TEXT).out.splitlines()
        self.assertEqual(len(set(sample)), 5)
        self.assertLessEqual(set(sample), set(listed))
        again = self.hone("space", "--sample", "5", "--seed", "3", "-", input=self.TEXT).out.splitlines()
        self.assertEqual(sample, again)
        configs = self.hone("space", "--list", "--json", "-", input=self.TEXT).json["configs"]
        self.assertEqual(len(configs), 20)

    def test_kernel_tuners_document_is_read(self):
        document = {"ConfigurationSpace": {"TuningParameters": [
            {"Name": "x", "Type": "int", "Values": "[1, 2, 4]", "Default": 1},
            {"Name": "y", "Type": "int", "Values": "[1, 2]", "Default": 1}],
            "Conditions": [{"Expression": "x / y >= 2", "Parameters": ["x", "y"]}]}}
        answer = self.hone("space", "-", "--json", input=json.dumps(document)).json
        self.assertEqual((answer["count"], answer["cartesian"]), (3, 6))

    def test_configs_have_numbers(self):
        text = "a: 1..8\nb: 1..8\nwhere a < b\n"
        listed = self.hone("space", "--list", "-", input=text).out.splitlines()
        for rank, config in enumerate(listed):
            self.assertEqual(self.hone("space", "--at", str(rank), "-", input=text).out.strip(), config)
            self.assertEqual(self.hone("space", "--rank", config, "-", input=text).out, f"{rank}\n")
        answer = self.hone("space", "--at", "3", "--rank", "a=1 b=3", "--json", "-", input=text).json
        self.assertEqual((answer["rank"], answer["configs"]), (1, [{"a": 1, "b": 5}]))
        self.refused("space", "-", "--at", "28", input=text, code=NO, says="28 valid configs")
        self.refused("space", "-", "--at", "-1", input=text, says="from 0 on")
        self.refused("space", "-", "--rank", "a=2 b=1", input=text, says="a < b")

    def test_neighbours_differ_in_one_parameter(self):
        text = "a: 1..8\nb: 1..8\nwhere a < b\n"
        near = self.hone("space", "--neighbours", "a=2 b=4", "--adjacent", "-", input=text).out.splitlines()
        self.assertEqual(near, ["a=1 b=4", "a=3 b=4", "a=2 b=3", "a=2 b=5"])
        every = self.hone("space", "--neighbours", "a=2 b=4", "-", input=text).out.splitlines()
        self.assertEqual(len(every), 2 + 5)
        self.refused("space", "-", "--neighbours", "a=2", input=text, says="'b' is missing")
        self.refused("space", "-", "--adjacent", input=text, says="--neighbours")

    def test_a_space_beyond_enumerating_is_counted_and_sampled(self):
        path = str(DATA / "golden" / "spaces" / "pipeline.txt")
        self.assertIn("18463608405 valid configs", self.hone("space", path).out)
        config = self.hone("space", "--at", "1000000000", path).out.strip()
        self.assertEqual(self.hone("space", "--rank", config, path).out, "1000000000\n")
        self.assertEqual(len(self.hone("space", "--sample", "20", path).out.splitlines()), 20)

    def test_what_cannot_be_counted_is_bounded(self):
        text = "".join(f"{name}: 1..1000\n" for name in "abcde")
        text += "where (a * b + c * d + a * d + b * e + c * e) % 7 == 0\nwhere (a * c + b * d) % 5 == e % 5\n"
        answer = self.hone("space", "--json", "-", input=text).json
        self.assertIsNone(answer["count"])
        self.assertLess(0, answer["low"])
        self.assertLess(answer["low"], answer["high"])
        self.assertRegex(self.hone("space", "-", input=text).out, r"\d+ to \d+ valid configs of 10{15}\n")
        self.refused("space", "--at", "0", "-", input=text, code=WORLD, says="too entangled")

    def test_an_empty_space_is_the_answer_no(self):
        self.assertIn("0 valid", self.hone("space", "-", code=NO, input="a: 1..4\nwhere a > 5\n").out)

    def test_a_bad_space_names_line_and_offset(self):
        self.refused("space", "-", input="a: 1..4\nb: 1..\n", says=["line 2", "offset", "integer"])
        self.refused("space", "-", input="a: 1..4\na: 1\n", says=["'a'", "already"])
        self.refused("space", "-", input="a: 1..4\nwhere a <= n\n", says="'n'")
        self.refused("space", "-", input="a: 0..4\nwhere 8 // a > 1\n", says="a=0")
        self.refused("space", "-", input='{"ConfigurationSpace": 3}')
        self.refused("space", "nowhere.txt", code=WORLD, says="nowhere.txt")


class Explain(CommandTest):
    CHAIN = ["override", "overlay", "lock", "memory", "store", "transfer", "autotune", "heuristic"]

    def test_every_link_and_every_kernel_says_why(self):
        answer = self.hone("explain", NORM, "--json").json
        self.has_fields(answer, {"call": str, "key": str, "source": str, "kernel": str, "config": dict, "chain": list,
                                 "kernels": list, "nearest": list})
        self.assertEqual([row["link"] for row in answer["chain"]], self.CHAIN)
        for row in answer["chain"]:
            self.has_fields(row, {"link": str, "answer": str, "why": (str, NULL), "own": NULL})
        for row in answer["kernels"]:
            self.has_fields(row, {"name": str, "eligible": bool, "why": str})
        self.assertEqual(answer["source"], "heuristic")
        self.assertEqual(answer["key"], self.hone("key", NORM, "--json").json["key"])

    def test_it_never_tunes(self):
        for policy in ("tune", "heuristic"):
            self.hone("explain", NORM, env={"HONE_POLICY": policy})
            self.assertEqual(self.stat()["measurements"], 0)

    def test_a_kernel_that_cannot_run_the_call_says_why(self):
        answer = self.hone("explain", "matmul(f32[64,64], f32[64,64])", "--json").json
        refused = {row["name"]: row["why"] for row in answer["kernels"] if not row["eligible"]}
        self.assertIn("rows", refused["portable_decode"])

    def test_the_text_says_the_same_as_the_document(self):
        text, answer = self.hone("explain", NORM, "--all").out, self.hone("explain", NORM, "--json").json
        self.assertIn(f"answered by {answer['source']}: native/{answer['kernel']}", text)
        for row in answer["kernels"]:
            self.assertRegex(text, rf"(?m)^  \w+ +{re.escape(row['name'])} +(yes|no) ")


class Ratios(CommandTest):
    def test_a_ratio_of_few_samples_is_not_told(self):
        document = self.hone("tune", NORM, *QUICK, "--json").json
        evidence = document["entries"][0]["evidence"]
        evidence.update(time_ns=100.0, low_ns=90.0, high_ns=110.0, default_time_ns=300.0, runner_up="rival", ratio=1.5,
                        ratio_low=1.4, ratio_high=1.6)
        few, told = "too few samples to compare with the default\n", "3.00 times as fast as the default\n"
        rival = "10 samples, warm; 1.50 times as fast as rival (95 % 1.40 to 1.60); "
        for samples, of_default, said in ((9, 10, "9 samples, warm; too few samples to compare with rival; " + few), (10, 9, rival + few), (10, 10, rival + told),
                                          (10, 0, rival + told)):  # which earlier versions do not tell
            evidence.update(samples=samples, rounds=samples, default_samples=of_default)
            self.hone("store", "put", input=json.dumps(document))
            self.assertIn(said, self.hone("explain", NORM).out)


class Doctor(CommandTest):
    def test_each_check_has_a_detail_and_a_failed_one_has_advice(self):
        answer = self.hone("doctor", "--json", code=None)
        self.assertIn(answer.code, (DONE, NO))
        checks = answer.json["checks"]
        self.assertLessEqual({"store", "damage", "file system", "lock file", "worker", "clock", "governor", "frequency",
                              "pinning", "throttling", "load", "contests", "platforms", "libraries"},
                             {row["name"] for row in checks})
        for row in checks:
            self.has_fields(row, {"name": str, "ok": bool, "detail": str, "advice": (str, NULL)})
            self.assertTrue(row["ok"] or row["advice"])
        self.assertEqual(answer.code == DONE, all(row["ok"] for row in checks))

    def test_a_store_that_cannot_be_opened_is_found(self):
        answer = self.hone("doctor", "--json", "--store", f"sqlite:{self.folder}", code=NO)
        self.assertFalse(self.check(answer, "store")["ok"])

    def check(self, answer, name):
        return next(row for row in answer.json["checks"] if row["name"] == name)

    def doctor(self, **options):
        return self.hone("doctor", "--json", code=None, **options)

    def test_a_worker_is_asked_and_not_only_looked_at(self):
        self.assertTrue(self.check(self.doctor(), "worker")["ok"])
        worker = self.check(self.doctor(env={"HONE_WORKER": "/bin/true"}), "worker")
        self.assertFalse(worker["ok"])
        self.assertIn("/bin/true: does not answer", worker["detail"])

    def test_the_store_is_read_and_how_it_is_written_is_said(self):
        self.hone("tune", NORM, *QUICK)
        store = self.check(self.doctor(), "store")
        self.assertTrue(store["ok"])
        self.assertIn("1 decision, ", store["detail"])
        self.assertIn("write-ahead log", store["detail"])

    def test_choices_that_were_measured_on_a_disturbed_machine_are_named(self):
        document = self.hone("tune", NORM, NORM_NEAR, *QUICK, "--json").json
        for entry in document["entries"]:
            entry["evidence"].update({"throttled": 0, "stolen": 0.01})
            entry["evidence"].pop("undecided", None)  # which doctor tells, too
        self.hone("store", "put", "--json", input=json.dumps(document))
        row = self.check(self.doctor(), "contests")
        self.assertIn("0 of 2 stored choices", row["detail"])
        self.assertIsNone(row["advice"])
        document["entries"][1]["evidence"].update({"throttled": 3, "time_ns": 1})
        self.hone("store", "put", "--json", input=json.dumps(document))
        row = self.check(self.doctor(), "contests")
        self.assertIn("1 of 2 stored choices", row["detail"])
        self.assertIn(document["entries"][1]["call"], row["detail"])
        self.assertIn("--audit", row["advice"])

    def test_a_damaged_record_is_told_once_and_then_remembered(self):
        self.hone("tune", NORM, *QUICK)
        with sqlite3.connect(self.folder / "store.db") as db:
            db.execute("UPDATE decision SET time_ns = time_ns + 1")
        first = self.doctor()
        self.assertEqual(first.code, NO)
        self.assertFalse(self.check(first, "store")["ok"])
        self.assertIn("tune those calls again", self.check(first, "store")["advice"])
        second = self.doctor()
        self.assertTrue(self.check(second, "store")["ok"])
        self.assertIn("1 records set aside", self.check(second, "damage")["detail"])

    def test_a_file_that_is_no_store_is_moved_aside_and_told(self):
        (self.folder / "store.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
        first = self.doctor()
        self.assertFalse(self.check(first, "store")["ok"])
        self.assertIn("damaged", self.check(first, "store")["detail"])
        self.assertIn("1 files moved aside, one is store.db.damaged-", self.check(self.doctor(), "damage")["detail"])

    # The roots of the tables stand on the first page; their pages are looked through without it.
    def test_what_a_damaged_file_still_holds_is_carried_over_and_told_once(self):
        for begin, size in ((0, 4096), (4096 * 6, 4096)):
            self.hone("tune", NORM, *QUICK)
            path = self.folder / "store.db"
            data = bytearray(path.read_bytes())
            data[begin:begin + size] = bytes(size)
            path.write_bytes(data)
            first = self.check(self.doctor(), "store")
            self.assertFalse(first["ok"])
            self.assertIn("a new store was begun with its ", first["detail"])
            self.assertIn("tune those calls again", first["advice"])
            second = self.check(self.doctor(), "store")
            self.assertTrue(second["ok"])
            self.assertIn("1 decision, ", second["detail"])

    def test_verify_goes_on_with_the_store_that_holds_what_was_sound(self):
        self.hone("tune", NORM, *QUICK)
        path = self.folder / "store.db"
        data = bytearray(path.read_bytes())
        data[4096 * 6:4096 * 7] = bytes(4096)
        path.write_bytes(data)
        first = self.hone("store", "verify", code=NO)
        self.assertRegex(first.err, "its pages are damaged: .*; it was moved to .*, and a new store was begun with its [0-9]+ sound records")
        self.assertEqual(len(first.err.splitlines()), 1, first.err)  # SQLite's words have several lines
        self.assertRegex(first.out, "^[1-9][0-9]* sound record")

    def test_without_a_lock_file_there_is_nothing_to_say(self):
        self.assertTrue(self.check(self.doctor(), "lock file")["ok"])

    def test_a_lock_file_that_stops_programs_is_found(self):
        missing = self.check(self.doctor(env={"HONE_LOCK": "hone.lock"}), "lock file")
        self.assertFalse(missing["ok"])
        self.assertIn("No such file", missing["detail"])
        self.hone("tune", NORM, *QUICK)
        self.hone("lock")
        good = self.check(self.doctor(env={"HONE_LOCK": "hone.lock"}), "lock file")
        self.assertTrue(good["ok"])
        self.assertIn("1 choice, 1 for this machine", good["detail"])
        path = self.folder / "hone.lock"
        path.write_text(re.sub(r" native/\w+", " native/gone", path.read_text()))
        self.hone("lock", "--reseal")
        drifted = self.check(self.doctor(env={"HONE_LOCK": "hone.lock"}), "lock file")
        self.assertFalse(drifted["ok"])
        self.assertIn("line 4: kernel native/gone is not registered", drifted["detail"])


class LowerRuns(CommandTest):
    def test_run_takes_nan_where_the_reference_has_it(self):
        for call in ("softmax(f32[2,3], scale=nan)", "softmax(f32[3,30], scale=inf)", "mean_pooling(f32[2,0,3])"):
            answer = self.hone("run", call, "--json", env={"HONE_POLICY": "heuristic"}).json
            self.assertEqual((answer["verified"], answer["wrong"], answer["max_error"]), (True, None, 0), call)

    def test_run_checks_the_answer_against_the_reference(self):
        answer = self.hone("run", PRODUCT, "--json", env={"HONE_POLICY": "heuristic"}).json
        self.has_fields(answer, {"kernel": str, "source": str, "time_ns": (int, float), "max_error": (int, float),
                                 "tolerance": (int, float), "verified": bool})
        self.assertEqual(answer["source"], "heuristic")
        self.assertTrue(answer["verified"])
        self.assertLessEqual(answer["max_error"], answer["tolerance"])

    def choose(self, *choices, call=NORM):
        return ["bench", call, *(word for choice in choices for word in ("--choice", choice))]

    def test_bench_holds_choices_against_each_other(self):
        config = {"unroll": 2, "rows_per_task": 4, "store": "cached", "threads": 1}
        given = [f"portable {json.dumps(config)}", "portable", "portable unroll=1 rows_per_task=4 store=cached threads=1"]
        document = self.hone(*self.choose(*given), "--seconds", "0.5", "--json").json
        self.assertEqual(document["call"], NORM)
        choices = document["choices"]
        self.assertEqual([row["kernel"] for row in choices], ["portable"] * 3)
        self.assertEqual([choices[0]["config"], choices[2]["config"]], [config, dict(config, unroll=1)])
        for row in choices:
            self.has_fields(row, {"time_ns": float, "ratio": float, "low": float, "high": float, "samples": int,
                                  "disturbed": int})
            self.assertGreaterEqual(row["samples"], 5)
            self.assertLessEqual(row["low"], row["ratio"])
            self.assertLessEqual(row["ratio"], row["high"])
        # Not the least time: two are compared within rounds.
        self.assertIn([1, 1, 1], [[row["ratio"], row["low"], row["high"]] for row in choices])
        self.assertEqual(min(row["ratio"] for row in choices), 1)
        self.assertEqual(self.stat()["measurements"], 0)

    def test_bench_takes_the_stored_choice_and_the_default(self):
        self.refused(*self.choose("stored", "portable"), code=NO, says=["--choice 'stored'", "hone tune"])
        stored = self.hone("tune", NORM, "--kernel", "portable", *QUICK, "--json").json["entries"][0]
        rows = self.hone(*self.choose("stored", "default"), "--seconds", "0.2", "--json").json["choices"]
        self.assertEqual((rows[0]["kernel"], rows[0]["config"]), (stored["kernel"], stored["config"]))
        self.assertNotEqual((rows[1]["kernel"], rows[1]["config"]), (stored["kernel"], stored["config"]))
        self.assertRegex(self.hone(*self.choose("stored", "default"), "--seconds", "0.2").out,
                         r"(?s)time / fastest.*\n   portable .* 1\.\d+x")

    def test_bench_says_what_is_wrong_with_a_choice(self):
        for choices, code, says in (
            (["portable"], USAGE, "1 --choice, expected 2 to 16"),
            (["portable"] * 17, USAGE, "17 --choice, expected 2 to 16"),
            (["portable", "portable"], USAGE, "choices 1 and 2 are the same"),
            (["portable", "nobody"], USAGE, ["unknown kernel 'nobody' of rms_norm", "portable"]),
            (["portable", "portable unroll=3"], USAGE, "--choice 'portable unroll=3'"),
            (["portable", 'portable {"unroll":'], USAGE, "--choice 'portable {"),
            (["portable", "portable sides=2"], USAGE, "no parameter 'sides'"),
            (["portable", "reference"], NO, "is the reference"),
        ):
            with self.subTest(choices=choices):
                self.refused(*self.choose(*choices), code=code, says=says)
        self.refused("bench", NORM, PRODUCT, "--choice", "portable", "--choice", "default", says="expected one call")

    def test_bench_sets_kernels_side_by_side(self):
        calls = self.hone("bench", NORM, PRODUCT, "--seconds", "0.3", "--json").json["calls"]
        self.assertEqual([row["call"] for row in calls], [NORM, PRODUCT])
        for call in calls:
            for row in call["rows"]:
                self.has_fields(row, {"kernel": str, "what": str, "config": dict, "time_ns": float, "low_ns": float,
                                      "high_ns": float})
            self.assertEqual(call["rows"][0]["what"], "chosen")
        self.assertEqual(self.stat()["measurements"], 0)
