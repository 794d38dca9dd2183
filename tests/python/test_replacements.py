"""hone's operations in models of the real torch, on the CPU."""

import copy
import pickle
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import hone
import hone.torch
from support import HoneTest


class LlamaRMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)
        self.variance_epsilon = 1e-5

    def forward(self, x):
        wide = x.float()
        return (self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))).to(x.dtype)


class AddedRMSNorm(LlamaRMSNorm):
    def forward(self, x):
        return super().forward(x) + 1


class GemmaRMSNorm(LlamaRMSNorm):
    def forward(self, x):
        return super().forward(x) + x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


class Attention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.q_proj, self.o_proj = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(dim, kv_heads * self.head_dim, bias=False) for _ in range(2))

    def forward(self, x, mask=None):
        batch, length, dim = x.shape
        q, k, v = (made.view(batch, length, -1, self.head_dim).transpose(1, 2) for made in (self.q_proj(x), self.k_proj(x), self.v_proj(x)))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, dim))


class Mlp(nn.Module):
    def __init__(self, dim, wide):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(dim, wide, bias=False), nn.Linear(dim, wide, bias=False)
        self.down_proj, self.act_fn = nn.Linear(wide, dim, bias=False), nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Model(nn.Module):
    """As models of language are written."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 64)
        self.norm, self.attention = LlamaRMSNorm(64), Attention(64, 4, 2)
        self.second, self.mlp = nn.RMSNorm(64), Mlp(64, 96)
        self.last, self.head, self.softmax = nn.LayerNorm(64), nn.Linear(64, 50), nn.Softmax(-1)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.attention(self.norm(x))
        x = x + self.mlp(self.second(x))
        return self.softmax(self.head(self.last(x)))


TOKENS = torch.arange(32).reshape(2, 16) % 50


class Models(HoneTest):
    def setUp(self):
        super().setUp()
        torch.manual_seed(1)
        self.model = Model()
        with torch.no_grad():
            self.expected = self.model(TOKENS)

    def run_model(self, run=None, tokens=TOKENS):
        with torch.no_grad():
            return (self.model if run is None else run)(tokens)

    def test_a_model_gives_what_it_gave_and_is_torchs_again_in_a_line(self):
        parameters = {name: id(value) for name, value in self.model.named_parameters()}
        replaced = hone.torch.replace(self.model)
        self.assertEqual({name: id(value) for name, value in self.model.named_parameters()}, parameters)
        torch.testing.assert_close(self.run_model(), self.expected, rtol=1e-4, atol=1e-6)
        operations = {site.name: (site.operation, site.hits) for site in replaced.sites}
        self.assertEqual(operations["attention"], ("scaled_dot_product_attention", 1))
        self.assertEqual(operations["mlp"], ("silu_mul", 1))
        self.assertEqual({operation for operation, _ in operations.values()},
                         {"matmul", "rms_norm", "layer_norm", "softmax", "silu_mul", "scaled_dot_product_attention"})
        self.assertEqual({hits for _, hits in operations.values()}, {1})
        self.assertEqual(replaced.left, {"embedding": "hone has no operation for Embedding"})
        replaced.undo()
        self.assertIs(type(self.model.head), nn.Linear)
        self.assertTrue(torch.equal(self.run_model(), self.expected))

    def test_the_report_says_what_was_gained(self):
        with hone.torch.replace(self.model) as replaced:
            self.run_model()
            text = str(replaced.measure(repeats=3))
            self.assertEqual({site.hits for site in replaced.sites}, {1})
        self.assertRegex(text, r"head +Linear +matmul +1 +[\d.]+ us -> [\d.]+ us \([\d.]+ x\)")
        self.assertIs(type(self.model), Model)
        with self.assertRaisesRegex(hone.InvalidArgumentError, "before undo"):
            replaced.measure()

    def test_it_compiles_to_one_graph_with_hones_operations(self):
        for dynamic in (False, True):
            torch._dynamo.reset()
            graphs = []

            def keep(graph, example):
                graphs.append([str(node.target) for node in graph.graph.nodes if str(node.target).startswith("hone.")])
                return graph.forward

            fast = torch.compile(self.model, backend=keep, fullgraph=True, dynamic=dynamic)
            with hone.torch.replace(self.model):
                torch.testing.assert_close(self.run_model(fast), self.expected, rtol=1e-4, atol=1e-6)
                self.assertEqual(len(graphs[-1]), 14, graphs[-1])
                if dynamic:
                    self.run_model(fast, TOKENS[:, :9])
                    self.run_model(fast, TOKENS[:, :11])
                    self.assertLessEqual(len(graphs), 2)
            torch.testing.assert_close(self.run_model(fast), self.expected)
            self.assertEqual(graphs[-1], [])

    def test_training_where_no_kernel_differentiates_is_refused_with_words(self):
        with hone.torch.replace(self.model) as replaced:
            site = {site.name: site for site in replaced.sites}
            self.assertEqual({name for name, one in site.items() if "cpu" not in one.trained_on}, set())
            self.assertEqual({one.operation for one in site.values() if "cuda" in one.trained_on}, {"matmul", "silu_mul"})
            site["norm"].trained_on = frozenset()
            with self.assertRaisesRegex(RuntimeError, r"norm \(LlamaRMSNorm\) runs hone's rms_norm, .*no kernel for cpu .*rms_norm_vjp.*no_grad.*undo"):
                self.model(TOKENS)
        self.model(TOKENS).sum().backward()

    def test_a_model_is_trained_as_torch_trains_it(self):
        def gradients():
            self.model.zero_grad()
            F.nll_loss(self.model(TOKENS).flatten(0, 1).log(), TOKENS.flatten()).backward()
            return {name: one.grad.clone() for name, one in self.model.named_parameters()}

        expected = gradients()
        with hone.torch.replace(self.model) as replaced:
            ours = gradients()
            self.assertEqual({site.hits for site in replaced.sites}, {1})
        for name, one in ours.items():
            torch.testing.assert_close(one, expected[name], rtol=1e-3, atol=1e-4 * float(expected[name].abs().max()), msg=name)

    def test_what_hone_would_answer_otherwise_is_torchs_with_the_reason(self):
        replaced = hone.torch.replace(self.model)
        site = {site.name: site for site in replaced.sites}
        with torch.no_grad():
            x = torch.randn(2, 8, 64)
            mask = torch.ones(8, 8, dtype=torch.bool).tril()
            torch.testing.assert_close(self.model.attention(x, mask), self.model.attention(x), rtol=1e-4, atol=1e-5)
            self.model.double().head(x.double())
            nn.functional.softmax(x, -1)
        self.assertRegex(str(dict(site["attention"].passed)), "attn_mask")
        self.assertEqual(dict(site["head"].passed), {"float64": 1})
        self.assertIn("1: float64", str(replaced))

    def test_a_bias_is_a_part_of_the_product(self):
        model, asked = nn.Sequential(nn.Linear(64, 8)), []
        with torch.no_grad(), hone.torch.replace(model), hone.context(links={"store": lambda call: asked.append(call.text)}):
            model(torch.randn(3, 64))
        self.assertEqual(asked, ["matmul(f32[3,64], f32[8,64], transpose_b=true, bias=f32[8])"])

    def test_other_dtypes_and_empty_batches(self):
        linear, norm = nn.Linear(64, 8).bfloat16(), nn.LayerNorm(64).half()
        model = nn.ModuleList([linear, norm])
        x = torch.randn(3, 64)
        with torch.no_grad():
            expected = linear(x.bfloat16()), norm(x.half())
            with hone.torch.replace(model):
                torch.testing.assert_close(linear(x.bfloat16()), expected[0], rtol=2e-2, atol=2e-2)
                torch.testing.assert_close(norm(x.half()), expected[1], rtol=5e-3, atol=5e-3)
                self.assertEqual(linear(x[:0].bfloat16()).shape, (0, 8))
                with torch.autocast("cpu"):
                    self.assertEqual(nn.Sequential(linear)(x).dtype, torch.bfloat16)

    def test_a_module_that_does_not_do_what_its_name_says_stays(self):
        model = nn.ModuleDict({"plain": LlamaRMSNorm(32), "one": AddedRMSNorm(32), "gemma": GemmaRMSNorm(32)})
        x = torch.randn(4, 32)
        with torch.no_grad():
            expected = model["gemma"](x)
            replaced = hone.torch.replace(model)
            torch.testing.assert_close(model["gemma"](x), expected, rtol=1e-4, atol=1e-5)
        self.assertEqual([site.name for site in replaced.sites], ["plain", "gemma"])
        self.assertEqual(replaced.left, {"one": "it does something else than its name says"})

    def test_copies_and_pickles_are_torchs(self):
        with hone.torch.replace(self.model):
            for copied in (copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))):
                self.assertIs(type(copied.head), nn.Linear)
                self.assertTrue(torch.equal(self.run_model(copied), self.expected))
            self.assertEqual({*self.model.state_dict()}, {*Model().state_dict()})

    def test_what_is_no_model_is_refused(self):
        with self.assertRaisesRegex(hone.InvalidArgumentError, "takes a torch.nn.Module, and a function came"):
            hone.torch.replace(lambda x: x)
        with hone.torch.replace(self.model), self.assertRaisesRegex(hone.InvalidArgumentError, "already"):
            hone.torch.replace(self.model)
        with self.assertRaisesRegex(hone.InvalidArgumentError, "replace those of the model"):
            hone.torch.replace(torch.jit.script(nn.Linear(2, 2)))


if __name__ == "__main__":
    unittest.main()
