"""Programs of the real ejkernel with hone beside them: what labels name, what ejkernel runs of hone's, what it loads."""

import json
import os
import pathlib
import sys
import unittest

os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_COMPILATION_CACHE="false", JAXTYPING_DISABLE="1")

import hone
from support import QUICK, HoneTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "golden" / "lowered" / "one.bc"
LABEL = "scaled_dot_product_attention@v0:2133cfa20c40fe20"


class Labels(HoneTest):
    def test_a_result_has_the_operations_and_keys_of_labels(self):
        result = hone.offline(PROGRAM, **QUICK)
        entry, = result.entries
        self.assertEqual(f"{entry.op_id_v}:{entry.call_key}", LABEL)
        self.assertEqual(entry.cfg, result[0])
        again = hone.Result.from_json(result.to_json())
        self.assertEqual([row.call_key for row in again.entries], [entry.call_key])
        other = f"sqlite:{self.folder}/other.db"
        again.store(other)
        with hone.Store(other) as store:
            for name in (LABEL, f"ejkernel_ops#{LABEL}", LABEL.split(":")[1], result[0].key):
                self.assertEqual(store.get(name).kernel, result[0].kernel)
            self.assertIsNone(store.get("attention@v0:2133cfa20c40fe20"))

    def test_the_chain_takes_a_label_for_its_call(self):
        result = hone.offline(PROGRAM, **QUICK)
        for name in (LABEL, LABEL.split(":")[1]):
            self.assertEqual(hone.decide(name).key, result[0].key)
            self.assertEqual(hone.decide(name).source, "memory")
            self.assertIn("answered by memory", hone.explain(name))
        with self.assertRaises(hone.NotFoundError):
            hone.decide("flash_attention@v2:2133cfa20c40fe20")

    def test_inside_a_result_its_evidence_stands(self):
        call = "softmax(f32[4,64])"
        result = hone.tune(call, store=False, **QUICK)
        self.assertNotEqual(hone.decide(call).source, "overlay")
        for entered in (result, hone.Result.from_json(result.to_json()), hone.context(overlay=result)):
            with entered:
                decision, text = hone.decide(call), hone.explain(call)
            self.assertEqual(decision.source, "overlay")
            self.assertTrue(decision.verified)
            self.assertEqual((decision.time_ns, decision.samples), (result[0].time_ns, result[0].samples))
            self.assertIn("verified against", text)
            self.assertNotIn("unverified", text)

    def test_evidence_of_another_revision_says_nothing(self):
        call = "softmax(f32[4,64])"
        document = json.loads(hone.tune(call, store=False, **QUICK).to_json())
        document["entries"][0]["revision"] = "of another day"
        with hone.Result.from_json(json.dumps(document)):
            self.assertEqual(hone.decide(call).source, "overlay")
            self.assertFalse(hone.decide(call).verified)
            self.assertIn("not measured", hone.explain(call))


if __name__ == "__main__":
    unittest.main()
