"""hone's operations in models of the real torch, on the CPU."""

import concurrent.futures
import copy
import inspect
import linecache
import pathlib
import pickle
import tempfile
import unittest
from collections import Counter

import torch
import torch.nn.functional as F
import torch.nn.utils.parametrize
import torch.utils.checkpoint
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

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


class Bert(nn.Module):
    """As encoders are written: a padded batch, whose mask is added to the logits, by each head a bias of its own."""

    def __init__(self):
        super().__init__()
        self.embedding, self.first = nn.Embedding(50, 64), nn.LayerNorm(64)
        self.blocks = nn.ModuleList(nn.ModuleDict({"attention": Attention(64, 4, 4), "norm": nn.LayerNorm(64), "wide": nn.Linear(64, 96),
                                                   "narrow": nn.Linear(96, 64), "last": nn.LayerNorm(64)}) for _ in range(2))

    def forward(self, tokens, mask):
        x = self.first(self.embedding(tokens))
        for block in self.blocks:
            x = block["norm"](x + block["attention"](x, mask))
            x = block["last"](x + block["narrow"](F.gelu(block["wide"](x))))
        return x


def mixed(x, weight):
    """A function beside the modules, as attention of models is written."""
    weights = F.softmax(torch.bmm(x, x.transpose(-1, -2)), dim=-1, dtype=torch.float32).to(x.dtype)
    return torch.matmul(weights, x) @ weight


class ByHand(nn.Module):
    """A block whose weights are parameters, and whose functions are torch's."""

    def __init__(self, dim):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.rand(dim) + 0.5), nn.Parameter(torch.randn(dim))
        self.wide, self.bias = nn.Parameter(torch.randn(2 * dim, dim) / 8), nn.Parameter(torch.randn(2 * dim))
        self.narrow, self.inner = nn.Parameter(torch.randn(2 * dim, dim) / 8), nn.Linear(dim, dim)

    def last(self, x):
        flat = x.flatten(0, -2)
        return torch.addmm(self.shift, flat.mm(self.narrow), self.inner.weight).view(*x.shape[:-1], -1)

    def forward(self, x):
        x = F.layer_norm(x, self.scale.shape, self.scale, self.shift, eps=1e-6)
        x = x + mixed(x, self.inner.weight)
        x = torch.linalg.matmul(x, self.inner.weight).softmax(-1) + F.rms_norm(x, [x.shape[-1]], self.scale) + F.rms_norm(x, (x.shape[-1],), eps=1e-3)
        return self.inner(self.last(F.gelu(F.linear(x, self.wide, self.bias))))


class LowRank(nn.Linear):
    """A layer with a forward of its own, as adapters are."""

    def __init__(self, dim):
        super().__init__(dim, dim)
        self.a, self.b = nn.Parameter(torch.randn(4, dim)), nn.Parameter(torch.randn(dim, 4))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.a), self.b)


class Functions(HoneTest):
    """torch's functions that modules call themselves."""

    CALLED = {"F.layer_norm": 1, "F.softmax": 1, "torch.bmm": 1, "torch.matmul": 3, "torch.softmax": 1, "F.rms_norm": 2, "F.linear": 1, "torch.mm": 1,
              "torch.addmm": 1}

    def setUp(self):
        super().setUp()
        torch.manual_seed(4)
        self.model, self.x = ByHand(16), torch.randn(3, 5, 16)

    def hits(self, replaced):
        return {site.kind: site.hits for site in replaced.sites}

    def test_functions_of_a_forward_are_hones_and_torchs_again_in_a_line(self):
        expected = self.model(self.x).detach()
        with torch.no_grad():
            with hone.torch.replace(self.model) as replaced:
                self.assertEqual(self.hits(replaced), dict.fromkeys(self.CALLED, 0) | {"Linear": 0})
                torch.testing.assert_close(self.model(self.x), expected, rtol=1e-4, atol=1e-5)
                self.assertEqual(self.hits(replaced), self.CALLED | {"Linear": 1})
                self.assertEqual([dict(site.passed) for site in replaced.sites if site.passed], [])
                self.assertIsNotNone(replaced.measure().sites[0].hone_seconds)
                self.assertEqual(self.hits(replaced), self.CALLED | {"Linear": 1})
                F.linear(self.x, self.model.wide)  # not in the model
                self.assertEqual(self.hits(replaced), self.CALLED | {"Linear": 1})
            torch.testing.assert_close(self.model(self.x), expected, rtol=0, atol=0)
        self.assertRegex(str(replaced), r"2 modules ran hone's operations(.|\n)*\(the model\) +F.linear +matmul +1 +[\d.]+ us -> ")
        self.assertEqual((replaced.functions, type(self.model)), ({}, ByHand))

    def test_no_mode_is_on_once_a_run_has_met_what_the_sources_tell_alone(self):
        class Watched(ByHand):
            def __init__(self):
                super().__init__(16)
                self.modes, self.__named = [], 1.0

            def last(self, x):
                self.modes.append(torch._C._len_torch_function_stack())
                flat = x.flatten(0, -2)
                made = (lambda weight: torch.addmm(self.shift, flat.mm(self.narrow), weight))(self.inner.weight)
                return made.view(*x.shape[:-1], -1) * self.__named * len(super().extra_repr() + "1")

        model = Watched()
        expected = model(self.x).detach()
        with torch.no_grad(), hone.torch.replace(model) as replaced:
            for run in range(1, 4):
                torch.testing.assert_close(model(self.x), expected, rtol=1e-4, atol=1e-5)
                self.assertEqual(self.hits(replaced), {name: run * count for name, count in (self.CALLED | {"Linear": 1}).items()})
            model.eval()(self.x)
            model(self.x)
        self.assertEqual(model.modes, [0, 2, 0, 0, 2, 0])  # one of forward, one of last; again outside of training
        self.assertEqual(torch._C._len_torch_function_stack(), 0)

    def test_functions_that_the_sources_do_not_tell_keep_the_mode(self):
        class Chosen(nn.Module):
            def forward(self, function, x):
                return function(F.softmax(x, -1))

        model, x = Chosen(), torch.randn(3, 4)
        with torch.no_grad(), hone.torch.replace(model) as replaced:
            for _ in range(3):
                model(lambda x: torch.rms_norm(x, (4,)), x)
            self.assertEqual(self.hits(replaced), {"F.softmax": 3, "F.rms_norm": 3})

    def test_a_method_whose_file_was_changed_runs_as_it_was_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "changed.py"
            text = ("import torch\nfrom torch import nn\nimport torch.nn.functional as F\nclass Made(nn.Module):\n    modes = []\n"
                    "    def forward(self, x):\n        self.modes.append(torch._C._len_torch_function_stack())\n        return F.softmax(x, -1) * 2\n")
            for changed in (False, True):
                path.write_text(text)
                names = {}
                exec(compile(text, str(path), "exec"), names)
                path.write_text(text.replace("* 2", "* 3") if changed else text)
                linecache.checkcache()
                model, x = names["Made"](), torch.randn(2, 3)
                with torch.no_grad(), hone.torch.replace(model) as replaced:
                    for _ in range(2):
                        torch.testing.assert_close(model(x), 2 * x.softmax(-1))
                self.assertEqual((self.hits(replaced), model.modes), ({"F.softmax": 2}, [1, 1 if changed else 0]))

    def test_other_dtypes_are_computed_in_them(self):
        for dtype, tolerance in ((torch.bfloat16, 5e-2), (torch.float16, 1e-2)):
            model, x = copy.deepcopy(self.model).to(dtype), self.x.to(dtype)
            with torch.no_grad():
                expected = model(x)
                with hone.torch.replace(model) as replaced:
                    made = model(x)
            torch.testing.assert_close(made, expected, rtol=tolerance, atol=tolerance)
            self.assertEqual(self.hits(replaced), self.CALLED | {"Linear": 1})

    def test_what_hone_would_answer_otherwise_is_torchs(self):
        cases = {
            "not along the last dim": lambda x, w: F.softmax(x, 0),
            "normalized over several dims": lambda x, w: F.layer_norm(x, x.shape[-2:]),
            "int64": lambda x, w: x.long() @ w.long(),
            "no elements": lambda x, w: F.linear(x[:0], w),
            "dtypes that differ": lambda x, w: F.linear(x, w.bfloat16()),
            "beta or alpha": lambda x, w: torch.addmm(w, w, w, beta=2),
            "what is added is broadcast": lambda x, w: torch.addmm(w[:, :1], w, w),
            "float64": lambda x, w: F.softmax(x, -1, dtype=torch.float64),
            "arguments that torch refuses, or further ones": lambda x, w: torch.matmul(w, w, out=torch.empty_like(w)),
        }
        class Around(nn.Module):
            def forward(self, function, x, w):
                made = function(x, w)
                return made, F.linear(x, w)

        model, args = nn.ModuleList([Around()]), (torch.randn(2, 3, 4), torch.randn(4, 4))
        for reason, function in cases.items():
            try:
                expected = model[0](function, *args)
            except RuntimeError:
                expected = None
            with hone.torch.replace(model) as replaced:
                if expected is None:
                    self.assertRaises(RuntimeError, model[0], function, *args)
                else:
                    torch.testing.assert_close(model[0](function, *args), expected, rtol=1e-4, atol=1e-5)
            self.assertEqual(sum((site.passed for site in replaced.sites), Counter()), {reason: 1})

    def test_it_is_one_graph_also_where_sizes_are_symbols(self):
        expected, longer = self.model(self.x).detach(), torch.randn(3, 7, 16)
        for dynamic in (False, True):
            torch._dynamo.reset()
            graphs = []

            def keep(graph, example, graphs=graphs):
                graphs.append([str(node.target) for node in graph.graph.nodes if str(node.target).startswith("hone.")])
                return graph.forward

            fast = torch.compile(self.model, backend=keep, fullgraph=True, dynamic=dynamic)
            with torch.no_grad():
                after = self.model(longer)
                with hone.torch.replace(self.model):
                    torch.testing.assert_close(fast(self.x), expected, rtol=1e-4, atol=1e-5)
                    self.assertEqual(len(graphs[-1]), sum(self.CALLED.values()) + 1)
                    torch.testing.assert_close(fast(longer), after, rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(fast(self.x), expected, rtol=1e-4, atol=1e-5)
                self.assertEqual(graphs[-1], [])

    def test_they_are_exported(self):
        with torch.no_grad(), hone.torch.replace(self.model):
            program = torch.export.export(self.model, (self.x,))
            torch.testing.assert_close(program.module()(self.x), self.model(self.x))
        names = [str(node.target) for node in program.graph.nodes]
        self.assertEqual((names.count("hone.matmul.default"), names.count("aten.linear.default")), (8, 0))

    def test_make_fx_traces_them_also_with_sizes_that_are_symbols(self):
        from torch.fx.experimental.proxy_tensor import make_fx

        longer = torch.cat([self.x, self.x + 1])
        with torch.no_grad(), hone.torch.replace(self.model):
            for mode, x in (("real", self.x), ("fake", self.x), ("symbolic", longer)):
                graph = make_fx(self.model, tracing_mode=mode, _allow_non_fake_inputs=True)(self.x)
                self.assertIn("hone.matmul.default", [str(node.target) for node in graph.graph.nodes])
                torch.testing.assert_close(graph(x), self.model(x), rtol=1e-4, atol=1e-5)

    def test_they_are_trained_and_mapped_as_torchs(self):
        def gradients(model):
            model.zero_grad()
            model(self.x).square().mean().backward()
            return [one.grad.clone() for one in model.parameters()]

        def by_example(model):
            weights = {name: one.detach() for name, one in model.named_parameters()}
            loss = lambda weights, x: torch.func.functional_call(model, weights, (x[None],)).square().mean()  # noqa: E731
            return [*torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, self.x).values()]

        def of_gradients(model):
            x = self.x.clone().requires_grad_()
            first, = torch.autograd.grad(model(x).square().mean(), x, create_graph=True)
            return [*torch.autograd.grad(first.square().sum(), x)]

        for function in (gradients, by_example, of_gradients):
            expected = function(self.model)
            with hone.torch.replace(self.model) as replaced:
                for one, other in zip(function(self.model), expected, strict=True):
                    torch.testing.assert_close(one, other, rtol=2e-3, atol=1e-5)
            self.assertGreaterEqual(self.hits(replaced)["F.linear"], 1)

    def test_what_is_checkpointed_is_recorded_twice_alike(self):
        class Outer(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner, self.weight = inner, nn.Parameter(torch.eye(16))

            def project(self, x):
                return F.linear(x, self.weight)

            def forward(self, x):
                x = torch.utils.checkpoint.checkpoint(self.inner, F.linear(x, self.weight), use_reentrant=False)
                x = torch.utils.checkpoint.checkpoint(self.project, x, use_reentrant=False)
                return torch.utils.checkpoint.checkpoint(lambda x: F.layer_norm(x @ self.weight, (16,)), x, use_reentrant=False)

        model = Outer(self.model)
        model(self.x).square().mean().backward()
        expected = model.weight.grad.clone()
        model.zero_grad()
        with hone.torch.replace(model) as replaced:
            model(self.x).square().mean().backward()
        torch.testing.assert_close(model.weight.grad, expected, rtol=1e-3, atol=1e-5)
        of_outer = {site.kind: (site.hits, dict(site.passed)) for site in replaced.sites if site.name == ""}
        left = {"inside of torch.utils.checkpoint, or other hooks of saved tensors": 1}
        self.assertEqual(of_outer, {"F.linear": (3, {}), "torch.matmul": (0, left), "F.layer_norm": (0, left)})

    def test_a_layer_with_a_forward_of_its_own_has_its_functions(self):
        model, x = nn.Sequential(LowRank(8)), torch.randn(2, 8)
        expected = model(x).detach()
        with torch.no_grad(), hone.torch.replace(model) as replaced:
            torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
        self.assertEqual((self.hits(replaced), replaced.left), ({"F.linear": 3}, {}))

    def test_classes_that_torch_or_exec_made_are_looked_at(self):
        class Scaled(nn.Module):
            def forward(self, weight):
                return 2 * weight

        model, names = nn.Sequential(LowRank(8)), {"nn": nn, "F": F}
        torch.nn.utils.parametrize.register_parametrization(model[0], "a", Scaled())
        exec("class Made(nn.Module):\n    def forward(self, x):\n        return F.softmax(x, -1)", names)
        model.append(names["Made"]())
        x = torch.randn(2, 8)
        expected = model(x).detach()
        with torch.no_grad(), hone.torch.replace(model) as replaced:
            torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
        self.assertEqual(self.hits(replaced), {"F.linear": 3})
        torch.testing.assert_close(model(x).detach(), expected, rtol=0, atol=0)

    def test_what_cannot_be_seen_stays_and_is_told(self):
        class Sums(nn.Module):
            def forward(self, x):
                return torch.einsum("ij,kj->ik", x, x) + torch.baddbmm(x[None], x[None], x[None])[0]

        model = nn.Sequential(Sums(), ByHand(8))
        model[1].forward = lambda x: x
        with hone.torch.replace(model) as replaced:
            model(torch.randn(8, 8))
        self.assertEqual(replaced.functions["0"], {"torch.einsum": 1, "torch.baddbmm": 1})
        self.assertIn("0 calls torch.einsum, torch.baddbmm itself: these stay torch's", str(replaced))
        self.assertRegex(replaced.left["1"], "a forward was set on this object")

    def test_operands_with_gaps_are_no_reason_for_the_reference(self):
        class Turned(nn.Module):
            def forward(self, x, weight):
                y = torch.matmul(x, x.transpose(-1, -2)) + torch.bmm(x.transpose(1, 2), x)[:, :9, :9]
                return F.layer_norm(F.softmax(F.linear(y, weight.t()).transpose(1, 2), -1).transpose(1, 2), (9,)) + torch.matmul(x[..., ::4], weight[:4].repeat_interleave(2, 1)[:, ::2])

        model, args = Turned(), (torch.randn(2, 9, 16), torch.randn(9, 9))
        expected = model(*args)
        with torch.no_grad(), hone.torch.replace(model):
            torch.testing.assert_close(model(*args), expected, rtol=1e-4, atol=1e-4)
        kernels = {row.call: row.kernel for row in self.runtime.stats()}
        self.assertEqual((len(kernels), "reference" in kernels.values()), (6, False), kernels)

    def test_what_no_kernel_of_a_gpu_takes_is_torchs_there(self):
        with FakeTensorMode():
            a, rows, weight = (torch.empty(shape, device="cuda") for shape in ((2, 3, 4), (3, 4), (4, 4)))
        asked = {"batch": hone.replacements._ask_product(a, a.transpose(-1, -2)), "rows": hone.replacements._ask_product(a, weight),
                 "bmm": hone.replacements._ask_bmm(a, a.transpose(-1, -2)), "linear": hone.replacements._ask_linear(a, weight),
                 "float64": hone.replacements._ask_mm(rows.double(), weight.double())}
        batch = "a batch of products on cuda, which hone's own kernels refuse there"
        self.assertEqual({name: one[0] for name, one in asked.items()}, {"batch": batch, "rows": None, "bmm": batch, "linear": None, "float64": "float64"})

    def test_signatures_of_methods_stay(self):
        with hone.torch.replace(self.model):
            self.assertEqual(str(inspect.signature(self.model.forward)), "(x)")
            self.assertEqual(pickle.loads(pickle.dumps(self.model)).__class__, ByHand)


class Masks(HoneTest):
    def setUp(self):
        super().setUp()
        torch.manual_seed(2)
        self.seen = torch.rand(2, 4, 9, 9) < 0.6
        self.seen[0, 1, 3] = self.seen[1, :, 0] = False  # queries that see no key

    def masks(self):
        causal, padding = torch.ones(9, 9, dtype=torch.bool).tril(), torch.arange(9) < torch.tensor([[9], [4]])
        low = torch.zeros(2, 1, 1, 9).masked_fill(~padding[:, None, None], torch.finfo(torch.float32).min)
        minus = torch.zeros(2, 4, 9, 9).masked_fill(~self.seen, float("-inf"))
        return {"every head": self.seen, "all heads": self.seen[:, :1], "causal": causal, "padding": padding[:, None, None], "nothing": causal & False,
                "expanded": self.seen[:1, :, :, :1].expand(2, 4, 9, 9), "low": low, "minus infinity": minus, "bias": torch.randn(1, 4, 9, 9),
                "bias of a query": torch.randn(9, 1), "in three dims": torch.randn(4, 9, 9), "wide": torch.randn(9, 9).expand(2, 4, 9, 9),
                "turned": torch.randn(9, 9).t()}

    def test_attention_with_a_mask_is_torchs(self):
        model = Attention(64, 4, 2)
        x, masks = torch.randn(2, 9, 64), self.masks()
        with torch.no_grad():
            expected = {name: model(x, mask) for name, mask in masks.items()}
            with hone.torch.replace(model) as replaced:
                for name, mask in masks.items():
                    torch.testing.assert_close(model(x, mask), expected[name], rtol=1e-4, atol=1e-5, msg=name)
                model(x)
        site = replaced.sites[0]
        self.assertEqual((site.hits, site.masked, dict(site.passed)), (len(expected) + 1, len(expected), {}))
        self.assertRegex(str(replaced), r"Attention +scaled_dot_product_attention, dot_product_attention +14 ")

    def test_masks_go_into_a_graph_of_sizes_that_are_symbols(self):
        model = Attention(64, 4, 2)
        with torch.no_grad():
            for mask in (self.seen, torch.zeros(2, 1, 1, 9).masked_fill(~self.seen[:, :1, :1], float("-inf"))):
                torch._dynamo.reset()
                operations = set()

                def keep(graph, example, operations=operations):
                    operations.update(str(node.target) for node in graph.graph.nodes)
                    return graph.forward

                fast = torch.compile(model, backend=keep, fullgraph=True, dynamic=True)
                for size in (9, 7, 6):
                    x, part = torch.randn(2, size, 64), mask[..., :size] if mask.shape[2] == 1 else mask[..., :size, :size]
                    expected = model(x, part)
                    with hone.torch.replace(model):
                        torch.testing.assert_close(fast(x, part), expected, rtol=1e-4, atol=1e-5)
                self.assertIn("hone.dot_product_attention", operations)

    def test_a_mask_beside_a_gradient_is_torchs(self):
        model, x = Attention(64, 4, 2), torch.randn(2, 9, 64)
        model(x, self.seen).sum().backward()
        expected = model.q_proj.weight.grad.clone()
        model.zero_grad()
        with hone.torch.replace(model) as replaced:
            model(x, self.seen).sum().backward()
        torch.testing.assert_close(model.q_proj.weight.grad, expected, rtol=1e-3, atol=1e-4)
        self.assertEqual(dict(replaced.sites[0].passed), {"attn_mask where a gradient is recorded: dot_product_attention has none": 1})

    def test_a_mask_where_no_kernel_takes_it_is_torchs(self):
        model, x = Attention(64, 4, 2), torch.randn(2, 9, 64)
        with torch.no_grad(), hone.torch.replace(model) as replaced:
            replaced.sites[0].masked_on = frozenset()
            model(x, self.seen)
            q = torch.randn(2, 4, 9, 16)
            with self.assertRaises(RuntimeError):  # torch's: it takes no mask beside is_causal
                hone.replacements._attend(replaced.sites[0], q, q, q, self.seen, is_causal=True)
        self.assertEqual(dict(replaced.sites[0].passed), {"attn_mask on cpu: dot_product_attention has no kernel there": 1, "attn_mask beside is_causal": 1})

    def test_an_encoder_with_padding_gives_what_it_gave_and_hits(self):
        model, tokens = Bert(), TOKENS[:, :9]
        mask = torch.zeros(2, 1, 1, 9)
        mask[1, ..., 5:] = torch.finfo(torch.float32).min
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 5e-2)):
            model = model.to(dtype)
            with torch.no_grad():
                expected = model(tokens, mask.to(dtype))
                with hone.torch.replace(model) as replaced:
                    torch.testing.assert_close(model(tokens, mask.to(dtype)), expected, rtol=tolerance, atol=tolerance)
            hits = {site.name: (site.hits, site.masked) for site in replaced.sites}
            self.assertEqual((hits["blocks.0.attention"], hits["blocks.1.attention"], hits["blocks.1.wide"]), ((1, 1), (1, 1), (1, 0)))
            self.assertEqual({count for count, _ in hits.values()}, {1})

    def test_autocast_takes_masks_along(self):
        model, x = Attention(64, 4, 2), torch.randn(2, 9, 64)
        bias = torch.randn(4, 9, 9).masked_fill(torch.arange(9) < 3, torch.finfo(torch.float32).min)
        with torch.no_grad(), torch.autocast("cpu"):
            expected = model(x, bias)
            with hone.torch.replace(model) as replaced:
                torch.testing.assert_close(model(x, bias), expected, rtol=5e-2, atol=5e-2)
            self.assertEqual(replaced.sites[0].masked, 1)


class OwnModules(HoneTest):
    """torch's own modules of transformers."""

    def test_multihead_attention_is_projections_and_attention(self):
        hidden, bias = torch.rand(8, 7, 9) < 0.4, torch.randn(7, 9)
        padding = torch.rand(2, 9) < 0.4
        padding[1] = True  # nothing is left of it
        masks = ({}, {"key_padding_mask": padding}, {"attn_mask": hidden}, {"attn_mask": hidden[0]}, {"attn_mask": bias},
                 {"attn_mask": hidden, "key_padding_mask": padding}, {"attn_mask": bias, "key_padding_mask": padding.float() * -9})
        for options in ({}, {"batch_first": True}, {"bias": False, "batch_first": True}, {"kdim": 32, "vdim": 24}):
            model = nn.MultiheadAttention(64, 4, **options).eval()
            query, key, value = torch.randn(2, 7, 64), torch.randn(2, 9, model.kdim), torch.randn(2, 9, model.vdim)
            if not options.get("batch_first"):
                query, key, value = (one.transpose(0, 1) for one in (query, key, value))
            with torch.no_grad():
                for name, one in model.named_parameters():
                    one.normal_(std=0.2)  # torch's own begin with biases of zeros
                expected = [model(query, key, value, need_weights=False, **given)[0] for given in masks]
                own = model(query, query, query, need_weights=False)[0] if model.kdim == 64 else None
                with hone.torch.replace(model) as replaced:
                    for given, wanted in zip(masks, expected):
                        made, weights = model(query, key, value, need_weights=False, **given)
                        torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-5)
                        self.assertIsNone(weights)
                    if own is not None:
                        torch.testing.assert_close(model(query, query, query, need_weights=False)[0], own, rtol=1e-4, atol=1e-5)
            site, = replaced.sites
            self.assertEqual((site.hits, site.masked, dict(site.passed)), (7 + (own is not None), 6, {}))

    def test_the_hint_that_a_mask_is_causal_is_taken(self):
        model, x = nn.MultiheadAttention(64, 4, batch_first=True).eval(), torch.randn(2, 7, 64)
        mask = nn.Transformer.generate_square_subsequent_mask(7)
        with torch.no_grad():
            expected = model(x, x, x, attn_mask=mask, need_weights=False)[0]
            with hone.torch.replace(model) as replaced:
                for hint in (True, False):
                    made = model(x, x, x, attn_mask=mask, need_weights=False, is_causal=hint)[0]
                    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)
        self.assertEqual((replaced.sites[0].hits, replaced.sites[0].masked), (2, 1))

    def test_what_multihead_attention_leaves_to_torch_has_its_reason(self):
        x = torch.randn(5, 3, 64)
        odd, plain, dropped = nn.MultiheadAttention(64, 4, add_bias_kv=True).eval(), nn.MultiheadAttention(64, 4).eval(), nn.MultiheadAttention(64, 4, dropout=0.5)
        hidden = torch.zeros(3, 5, dtype=torch.bool)
        model = nn.ModuleList([odd, plain, dropped])
        with hone.torch.replace(model) as replaced:
            with torch.no_grad():
                odd(x, x, x, need_weights=False)
                plain(x, x, x)
                plain(x[:, 0], x[:, 0], x[:, 0], need_weights=False)
                plain(x[:0], x[:0], x[:0], need_weights=False)
                dropped(x, x, x, need_weights=False)
                with self.assertRaises(RuntimeError):
                    plain(x, x, x, need_weights=False, is_causal=True)
                with self.assertRaises((AssertionError, RuntimeError)):
                    plain(x, x, x, need_weights=False, key_padding_mask=hidden.t())
            plain(x, x, x, need_weights=False, key_padding_mask=hidden)
        reasons = [dict(site.passed) for site in replaced.sites]
        self.assertEqual(reasons, [
            {"add_bias_kv or add_zero_attn": 1},
            {"need_weights": 1, "queries of 2 dims, expected 3": 1, "no elements": 1, "arguments that torch refuses": 1, "masks that torch refuses": 1,
             "masks where a gradient is recorded: dot_product_attention has none": 1},
            {"dropout": 1}])
        self.assertEqual({site.hits for site in replaced.sites}, {0})

    def test_multihead_attention_is_trained_as_torch_trains_it(self):
        model, x = nn.MultiheadAttention(64, 4, batch_first=True), torch.randn(2, 7, 64)

        def gradients():
            model.zero_grad()
            model(x, x, x, need_weights=False)[0].square().sum().backward()
            return {name: one.grad.clone() for name, one in model.named_parameters()}

        expected = gradients()
        with hone.torch.replace(model) as replaced:
            ours = gradients()
            self.assertEqual(replaced.sites[0].hits, 1)
        for name, one in ours.items():
            torch.testing.assert_close(one, expected[name], rtol=1e-3, atol=1e-3 * float(expected[name].abs().max()), msg=name)

    def encoder(self, **options):
        layer = nn.TransformerEncoderLayer(64, 4, 96, batch_first=True, **options)
        return nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(64)).eval()

    def test_torchs_encoder_gives_what_it_gave_and_hits(self):
        x, padding = torch.randn(3, 10, 64), torch.arange(10) >= torch.tensor([[10], [7], [3]])
        causal = nn.Transformer.generate_square_subsequent_mask(10)
        calls = ({}, {"src_key_padding_mask": padding}, {"src_key_padding_mask": padding.flip(1)}, {"mask": causal}, {"mask": causal, "is_causal": True},
                 {"mask": causal, "src_key_padding_mask": padding.float() * -1e9})
        for options in ({}, {"norm_first": True, "activation": "gelu"}):
            model = self.encoder(**options)
            with torch.no_grad():
                expected = [model(x, **given) for given in calls]
                with hone.torch.replace(model) as replaced:
                    for given, wanted in zip(calls, expected):
                        torch.testing.assert_close(model(x, **given), wanted, rtol=1e-4, atol=1e-5)
                    self.assertEqual({site.hits for site in replaced.sites}, {6})
                    self.assertEqual(len(replaced.sites), 11)
                    self.assertEqual(replaced.left, {})
                self.assertIs(type(model), nn.TransformerEncoder)
                self.assertIs(type(model.layers[0]), nn.TransformerEncoderLayer)
                self.assertTrue(torch.equal(model(x), expected[0]))

    def test_torchs_encoder_is_one_graph(self):
        model, x = self.encoder(), torch.randn(2, 6, 64)
        mask = nn.Transformer.generate_square_subsequent_mask(6)
        with torch.no_grad():
            expected = model(x), model(x, mask=mask)
            fast = torch.compile(model, backend="aot_eager", fullgraph=True)
            with hone.torch.replace(model):
                torch.testing.assert_close(fast(x), expected[0], rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(fast(x, mask=mask), expected[1], rtol=1e-4, atol=1e-5)

    def test_a_layer_with_a_forward_of_its_own_stays(self):
        class Layer(nn.TransformerEncoderLayer):
            def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
                return super().forward(src, src_mask, src_key_padding_mask, is_causal) + 1

        model, x = nn.ModuleList([Layer(64, 4, 96, batch_first=True)]).eval(), torch.randn(2, 6, 64)
        with torch.no_grad():
            expected = model[0](x)
            with hone.torch.replace(model) as replaced:
                torch.testing.assert_close(model[0](x), expected, rtol=1e-4, atol=1e-5)
        self.assertEqual(replaced.left, {"0": "its forward is not that of TransformerEncoderLayer"})


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
        self.assertRegex(str(replaced), r"^\d+ modules run hone's operations, 1 were left\n")
        replaced.undo()
        self.assertRegex(str(replaced), r"^\d+ modules ran hone's operations, 1 were left; undone: the model runs torch's own\n")
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

    def test_calls_are_measured_under_the_autocast_that_they_had_and_one_that_no_longer_runs_is_told(self):
        model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 8)).eval()
        with hone.torch.replace(model) as replaced, torch.no_grad():
            with torch.autocast("cpu", torch.bfloat16):
                model(torch.ones(4, 16))  # the second module gets bfloat16, beside weights of float32
            with torch.autocast("cpu", torch.bfloat16):
                text = str(replaced.measure(repeats=1))
            self.assertRegex(text, r"1 +Linear +matmul +1 +[\d.]+ us -> ")
            model(torch.ones(4, 16))
            self.assertNotIn("not measured", str(replaced.measure(repeats=1)))
            model.bfloat16()
            text = str(replaced.measure(repeats=1))
            self.assertRegex(text, "1: 1 call that was noted no longer runs and is not measured: .*dtype")
            self.assertRegex(text, r"1 +Linear +matmul +2 +[\d.]+ us -> ")

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

    def test_attention_that_inductor_compiles_lies_in_memory_as_it_was_traced(self):
        model, x = Attention(64, 4, 2), torch.randn(2, 6, 64)
        expected = model(x).detach()
        torch._dynamo.reset()
        with hone.torch.replace(model):
            made = torch.compile(model, fullgraph=True)(x)
            made.sum().backward()
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)
        self.assertIsNotNone(model.q_proj.weight.grad)

    def test_where_no_kernel_differentiates_a_model_is_trained_by_torchs_own(self):
        def gradients():
            self.model.zero_grad()
            self.model(TOKENS).sum().backward()
            return [one.grad.clone() for one in self.model.parameters()]

        expected = gradients()
        for records in (True, False):
            with self.subTest(records=records), torch.set_grad_enabled(records), hone.torch.replace(self.model) as replaced:
                site = {site.name: site for site in replaced.sites}
                self.assertEqual({name for name, one in site.items() if "cpu" not in one.trained_on}, set())
                self.assertEqual({one.operation for one in site.values() if one.operation and "cuda" not in one.trained_on}, {"scaled_dot_product_attention"})
                for one in site.values():
                    one.trained_on = frozenset()
                if records:
                    for ours, plain in zip(gradients(), expected):
                        torch.testing.assert_close(ours, plain)
                    self.assertEqual({one.hits for one in site.values()}, {0})
                    self.assertEqual(dict(site["norm"].passed), {"a gradient is recorded, which has no kernel on cpu": 1})
                else:
                    self.model(TOKENS)
                    self.assertEqual({(one.hits, sum(one.passed.values())) for one in site.values()}, {(1, 0)})

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
            mask = torch.zeros(8, 8, dtype=torch.float64)
            with self.assertRaises(RuntimeError):  # torch's
                self.model.attention(x, mask)
            self.model.double().head(x.double())
            norm = next(name for name, one in site.items() if one.operation in ("rms_norm", "layer_norm"))
            self.model.get_submodule(norm)(x.double())
            nn.functional.softmax(x, -1)
        self.assertEqual(dict(site["attention"].passed), {"attn_mask of float64": 1})
        self.assertEqual((site["head"].hits, dict(site["head"].passed)), (1, {}))
        self.assertEqual(dict(site[norm].passed), {"float64": 1})
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

    def left_alone(self, module, *args, reason=None, **keywords):
        """What a module gives is torch's own, and hone's operation of it does not run."""
        with torch.no_grad():
            expected = module(*args, **keywords)
            with hone.torch.replace(nn.ModuleList([module])) as replaced:
                torch.testing.assert_close(module(*args, **keywords), expected, rtol=1e-4, atol=1e-5)
        hits = [site.hits for site in replaced.sites if site.name == "0"]
        self.assertEqual(hits, [0] * len(hits))
        if reason is not None:
            self.assertIn(reason, replaced.left.get("0", " ".join(one for site in replaced.sites for one in site.passed)))
        return replaced

    def test_what_a_module_does_beside_its_name_stays(self):
        class Dropping(Mlp):
            def forward(self, x):
                return F.dropout(super().forward(x), 0.5, self.training)

        class Dropped(Mlp):
            def __init__(self, *sizes):
                super().__init__(*sizes)
                self.drop = nn.Dropout(0.5)

            def forward(self, x):
                return self.drop(super().forward(x))

        class Clamped(Mlp):
            def forward(self, x):
                return self.down_proj(self.act_fn(self.gate_proj(x).clamp(max=7)) * self.up_proj(x).clamp(-7, 7))

        class Counting(Mlp):
            calls = 0

            def forward(self, x):
                self.calls += 1
                return super().forward(x) + (0 if self.calls < 5 else 1)

        class ScaledRMSNorm(LlamaRMSNorm):
            def __init__(self, dim):
                super().__init__(dim)
                self.register_buffer("by", torch.ones(()))

            def forward(self, x):
                return super().forward(x) * self.by

        class Decoding(Mlp):
            def forward(self, x):
                return super().forward(x) if x.shape[1] > 1 else super().forward(x).relu()

        class Flat(LlamaRMSNorm):
            def forward(self, x):
                return super().forward(x) if x.dim() == 3 else x

        class Batched(Mlp):
            def forward(self, x):
                batch, positions, dim = x.shape
                return super().forward(x)

        Flat.__name__ = "FlatRMSNorm"
        x, other = torch.randn(4, 32), "does something else than silu(gate) * up"
        self.left_alone(Decoding(32, 48), torch.randn(2, 1, 32), reason=other)
        self.left_alone(Flat(32), x, reason="it does something else than its name says")
        with hone.torch.replace(nn.ModuleList([Batched(32, 48)])) as replaced:
            self.assertIn("silu_mul", [site.operation for site in replaced.sites])
        for kind, reason in ((Dropping, other), (Dropped, "beside its three products: drop"), (Clamped, other), (Counting, other)):
            self.left_alone(kind(32, 48).eval(), x, reason=reason)
        self.left_alone(ScaledRMSNorm(32), x, reason="it has buffers")

    def test_what_is_changed_later_is_seen(self):
        x = torch.randn(4, 32)
        for module in (LlamaRMSNorm(32), nn.RMSNorm(32), nn.LayerNorm(32)):
            name = "variance_epsilon" if hasattr(module, "variance_epsilon") else "eps"
            with torch.no_grad(), hone.torch.replace(nn.ModuleList([module])) as replaced:
                setattr(module, name, 10.0)
                made = module(x)
            self.assertEqual(replaced.sites[0].hits, 1)
            torch.testing.assert_close(made, module(x), rtol=1e-4, atol=1e-5)
        module, seen = Mlp(32, 48), []
        module.act = F.silu
        with torch.no_grad(), hone.torch.replace(nn.ModuleList([module])) as replaced:
            module(x)
            module.act_fn.register_forward_hook(lambda *args: seen.append(args))
            module(x)
            module.act = F.gelu
            module(x)
        self.assertEqual((replaced.sites[0].hits, len(seen)), (1, 2))

    def learned(self, module, x):
        """Replaced, with a call that it has run without Python."""
        replaced = hone.torch.replace(nn.ModuleList([module]))
        self.addCleanup(replaced.undo)
        site = replaced.sites[0]
        with torch.no_grad():
            for _ in range(3):
                module(x)
        self.assertEqual((site.noted, site.hits), (1, 3))
        return site

    def as_torch(self, site, x):
        """What a module gives, beside torch's own forward of it."""
        with torch.no_grad():
            made, expected = site.module(x), site.before.forward(site.module, x)
        self.assertEqual((made.shape, made.dtype, made.is_contiguous()), (expected.shape, expected.dtype, True))
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)

    def test_a_learned_call_sees_weights_that_changed(self):
        def halve(module):
            module.weight.data.mul_(0.5)

        def load(module):
            module.load_state_dict({name: torch.randn_like(value) for name, value in module.state_dict().items()})

        def swap(module):
            torch.utils.swap_tensors(module.weight, nn.Parameter(torch.randn_like(module.weight)))

        def renew(module):
            module.weight = nn.Parameter(torch.randn(*module.weight.shape[:-1], 2 * module.weight.shape[-1])[..., ::2])

        def negate(module):
            module.weight = nn.Parameter(torch._neg_view(torch.randn_like(module.weight)))

        def bare(module):
            if getattr(module, "bias", None) is not None:
                module.bias = None

        def lay_over(module):
            vars(module)["weight"] = torch.randn_like(module._parameters["weight"])

        for make in (lambda: nn.Linear(32, 24), lambda: nn.LayerNorm(32), lambda: nn.RMSNorm(32, eps=1e-5), lambda: LlamaRMSNorm(32)):
            for change in (halve, load, swap, renew, negate, bare, lay_over):
                module, x = make(), torch.randn(2, 3, 32)
                site = self.learned(module, x)
                with self.subTest(site.kind, change=change.__name__), torch.no_grad():
                    change(module)
                    for _ in range(3):
                        self.as_torch(site, x)

    def test_a_learned_call_sees_another_dtype_shape_and_layout(self):
        for make in (lambda: nn.Linear(32, 24), lambda: nn.LayerNorm(32), lambda: nn.RMSNorm(32, eps=1e-5), lambda: nn.Softmax(-1)):
            x = torch.randn(2, 3, 32)
            site = self.learned(make(), x)
            for other in (x[:1], x[0], x[0, 0], x.transpose(0, 1), torch.randn(2, 3, 64)[..., ::2], torch.randn(2, 6, 32)[:, ::2], x.expand(4, 2, 3, 32),
                          torch.randn(0, 32), torch._neg_view(x), torch.randn(2, 3, 32, dtype=torch.cfloat).conj().imag, nn.Parameter(x)):
                for _ in range(3):
                    self.as_torch(site, other)
            site.module.double()
            for _ in range(3):
                self.as_torch(site, x.double())
            if site.kind == "Linear":
                site.module.float()
                with self.assertRaises(RuntimeError), torch.no_grad():
                    site.module(x.double())
        module = nn.Linear(32, 32)
        site = self.learned(module, torch.randn(4, 32))
        module.weight = nn.Parameter(torch.randn(16, 32))
        module.bias = nn.Parameter(torch.randn(16))
        self.as_torch(site, torch.randn(4, 32))

    def test_a_learned_call_is_seen_by_all_that_looks_at_torchs_operations(self):
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        class Functions(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        class Dispatched(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        module, x, seen = nn.Linear(32, 32), torch.randn(4, 32), []
        site = self.learned(module, x)
        with torch.no_grad():
            for mode in (Functions, Dispatched):
                seen.clear()
                with mode():
                    module(x)
                self.assertTrue(any("hone.matmul" in one for one in seen), seen)
            with FlopCounterMode(display=False) as counter:
                module(x)
            self.assertEqual(counter.get_total_flops(), 2 * 4 * 32 * 32)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                module(x)
            self.assertIn("hone::matmul", [event.name for event in profile.events()])
            with torch.autocast("cpu", torch.bfloat16):
                self.assertEqual(module(x).dtype, torch.bfloat16)
            expected = module(x)
            torch.testing.assert_close(torch.vmap(module)(x), expected)
            torch.testing.assert_close(torch.jit.trace(module, x, check_trace=False)(2 * x), module(2 * x))
            torch.testing.assert_close(torch.fx.experimental.proxy_tensor.make_fx(module)(x)(2 * x), module(2 * x))
            with FakeTensorMode(allow_non_fake_inputs=True) as fake:
                self.assertEqual(module(fake.from_tensor(x)).shape, x.shape)
        jacobian = torch.func.jacrev(module)(x[0])
        torch.testing.assert_close(jacobian, module.weight.detach(), rtol=1e-4, atol=1e-5)
        module(x).sum().backward()
        torch.testing.assert_close(module.bias.grad, torch.full((32,), 4.0))
        with torch.inference_mode():
            self.assertTrue(module(x).is_inference())
        with torch.no_grad():
            self.assertFalse(module(x).is_inference())
        self.assertEqual(torch.compile(module, fullgraph=True, backend="aot_eager")(x).shape, x.shape)
        noted = site.noted
        with torch.no_grad():
            module(x)
        self.assertEqual(site.noted, noted)

    def test_a_tensor_of_a_class_keeps_its_class_where_the_call_was_learned(self):
        class Named(torch.Tensor):
            pass

        class Product(nn.Module):
            def forward(self, x):
                return F.softmax(x, -1)

        for module in (nn.Linear(32, 32), nn.Softmax(-1), Mlp(32, 48), Product()):
            x = torch.randn(4, 32)
            with torch.no_grad():
                expected = module(x)
                with hone.torch.replace(nn.ModuleList([module])):
                    for _ in range(3):
                        self.assertIs(type(module(x)), torch.Tensor)
                        made = module(x.as_subclass(Named))
                        self.assertIs(type(made), Named)
                    torch.testing.assert_close(made.as_subclass(torch.Tensor), expected, rtol=1e-4, atol=1e-5)

    def test_a_learned_call_is_run_by_threads_and_counted_once_each(self):
        module, x = nn.Linear(32, 32), torch.randn(4, 32)
        site, expected = self.learned(module, x), None
        with torch.no_grad():
            expected = module(x)

        def work(_):
            with torch.no_grad():
                return all(torch.equal(module(x), expected) for _ in range(200))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertTrue(all(pool.map(work, range(8))))
        self.assertEqual(site.hits, 4 + 8 * 200)

    def test_further_arguments_and_dims_are_torchs(self):
        class AddingRMSNorm(LlamaRMSNorm):
            def forward(self, hidden, residual=None):
                return super().forward(hidden if residual is None else hidden + residual)

        x = torch.randn(4, 32)
        for keywords in ({"residual": x}, {"residual": None}):
            self.left_alone(AddingRMSNorm(32), x, reason="other arguments than one tensor", **keywords)
        self.left_alone(LlamaRMSNorm(32), x=x)
        for module in (nn.Softmax(-1), nn.LayerNorm(32), nn.RMSNorm(32)):
            self.left_alone(module, torch.randn(1, 1, 1, 1, 1, 1, 1, 2, 32), reason="more than 8 dims")

    def test_a_tensor_of_a_class_that_says_what_functions_make_of_it_is_torchs(self):
        from torch.nn.attention.bias import causal_lower_right, causal_upper_left

        class Attend(nn.Module):
            def forward(self, q, k, v, mask):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        Attend.__name__ = "SelfAttention"
        for make in (causal_upper_left, causal_lower_right):
            for rows, keys in ((7, 7), (3, 7)):
                q, k, v = (torch.randn(2, 4, size, 8) for size in (rows, keys, keys))
                self.left_alone(Attend(), q, k, v, make(rows, keys), reason="attn_mask that is a CausalBias")

    def test_what_is_no_tensor_is_refused_by_torch(self):
        for module in (nn.Linear(4, 4), nn.Softmax(-1), nn.LayerNorm(4)):
            for given in (None, "text", [1.0]):
                with self.assertRaises((TypeError, AttributeError)) as expected:
                    module(given)
                with hone.torch.replace(nn.ModuleList([module])), self.assertRaises(type(expected.exception)) as caught:
                    module(given)
                self.assertEqual(str(caught.exception), str(expected.exception))

    def test_shapes_that_torch_refuses_are_refused_by_torch_and_numbers_have_a_softmax(self):
        class Product(nn.Module):
            def forward(self, q, k, v):
                return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

        r = torch.randn
        for module, given in ((nn.Linear(8, 4), [r(3, 9)]), (nn.Linear(8, 4), [r(())]), (nn.LayerNorm(8), [r(3, 9)]), (nn.LayerNorm(8), [r(())]),
                              (nn.RMSNorm(8), [r(3, 9)]), (nn.RMSNorm(8, elementwise_affine=False), [r(3, 9)]),
                              (nn.LayerNorm(8, elementwise_affine=False), [r(3, 9)]), (Product(), [r(1, 2, 3, 8), r(1, 2, 3, 4), r(1, 2, 3, 8)]),
                              (Product(), [r(1, 3, 3, 8), r(1, 2, 5, 8), r(1, 2, 5, 8)])):
            with self.assertRaises(RuntimeError) as expected:
                module(*given)
            with self.subTest(module), hone.torch.replace(module), self.assertRaises(RuntimeError) as caught:
                module(*given)
            self.assertEqual(str(caught.exception), str(expected.exception))
        for dim in (-1, 0):
            with hone.torch.replace(module := nn.Softmax(dim)):
                self.assertEqual(float(module(r(()))), 1.0)

    def test_tensors_that_are_spread_over_ranks_are_torchs(self):
        """hone's operations have no rule of DTensor's for where their parts lie."""
        from torch import distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        self.addCleanup(distributed.destroy_process_group)
        module, x = Mlp(32, 64), torch.randn(2, 5, 32)
        expected = module(x)
        with hone.torch.replace(module) as replaced:
            spread = {"gate_proj": ColwiseParallel(use_local_output=False), "up_proj": ColwiseParallel(use_local_output=False), "down_proj": RowwiseParallel()}
            parallelize_module(module, init_device_mesh("cpu", (1,)), spread)
            for run in (module, torch.compile(module, backend="aot_eager")):
                made = run(x)
                torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)
                made.square().sum().backward()
        self.assertEqual([site.hits for site in replaced.sites], [0] * 4)
        self.assertEqual([dict(site.passed) for site in replaced.sites], [{"a DTensor": 1}] * 4)

    def test_the_eps_that_rms_norm_has_by_itself_is_torchs_in_every_dtype(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            module, x = nn.RMSNorm(32).to(dtype), (torch.randn(4, 32) * 1e-3).to(dtype)
            with torch.no_grad():
                expected = module(x)
                with hone.torch.replace(nn.ModuleList([module])) as replaced:
                    torch.testing.assert_close(module(x), expected, rtol=2e-2, atol=2e-2)
            self.assertEqual(replaced.sites[0].hits, 1)

    def test_to_look_at_a_module_changes_nothing_of_it(self):
        module, seen = Mlp(32, 48), []
        module.gate_proj.register_forward_hook(lambda *args: seen.append(args))
        norm = LlamaRMSNorm(32).train()
        state = torch.random.get_rng_state()
        with hone.torch.replace(nn.ModuleList([module, norm])) as replaced:
            self.assertEqual((seen, module.training, norm.training, len(replaced.sites)), ([], True, True, 5))
            self.assertTrue(torch.equal(torch.random.get_rng_state(), state))
            module(torch.randn(4, 32))
            self.assertEqual(len(seen), 1)

    def test_parameters_are_swapped_after_a_step_and_flops_are_torchs(self):
        def run(replaces):
            torch.manual_seed(1)
            model, x = nn.Sequential(nn.Linear(8, 12), nn.LayerNorm(12), nn.Linear(12, 4)), torch.randn(3, 8)
            if replaces:
                hone.torch.replace(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with FlopCounterMode(display=False) as counter:
                for _ in range(3):
                    optimizer.zero_grad()
                    model(x).square().mean().backward()
                    optimizer.step()
            torch.utils.swap_tensors(model[0].weight, nn.Parameter(torch.randn(12, 8)))
            torch.__future__.set_swap_module_params_on_conversion(True)
            self.addCleanup(torch.__future__.set_swap_module_params_on_conversion, False)
            with torch.no_grad():
                model(x)
            return model.double()(x.double()), counter.get_total_flops()

        (expected, flops), (made, counted) = run(False), run(True)
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)
        self.assertEqual(counted, flops)

    def test_what_was_laid_over_a_module_goes_before_it_is_undone(self):
        model, x = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), torch.randn(2, 8)
        expected = model(x)
        replaced = hone.torch.replace(model)
        nn.utils.parametrizations.weight_norm(model[0])
        with self.assertRaisesRegex(hone.InvalidArgumentError, r"laid over 0 \(ParametrizedLinear\) .*remove_parametrizations"):
            replaced.undo()
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            for _ in range(3):  # where no gradient is recorded, layers run from C
                torch.testing.assert_close(model(x), expected.detach(), rtol=1e-4, atol=1e-5)
        nn.utils.parametrize.remove_parametrizations(model[0], "weight")
        replaced.undo()
        self.assertEqual([type(one) for one in model], [nn.Linear, nn.Linear])
        with self.assertRaisesRegex(hone.InvalidArgumentError, "call hone.torch.replace"), replaced:
            pass
        replaced = hone.torch.replace(model)
        before = model[1].forward
        model[1].forward = lambda x: before(x) * 3
        with self.assertRaisesRegex(hone.InvalidArgumentError, "with a forward of its own"):
            replaced.undo()
        del model[1].forward
        replaced.undo()
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)

    def test_a_gradient_of_a_gradient_is_torchs_where_hone_has_none(self):
        def penalty(model, x):
            x = x.clone().requires_grad_()
            value = (model(x).square() * torch.arange(64.0)).sum()
            gradient, = torch.autograd.grad(value, x, create_graph=True)
            gradient.square().sum().backward()
            return [x.grad, *(parameter.grad for parameter in model.parameters())]

        x = torch.rand(4, 64)
        for make in (lambda: nn.LayerNorm(64), lambda: nn.RMSNorm(64), lambda: nn.Softmax(-1), lambda: LlamaRMSNorm(64), lambda: Mlp(64, 96)):
            own, ours = nn.Sequential(make()), nn.Sequential(make())
            ours.load_state_dict(own.state_dict())
            hone.torch.replace(ours)
            for made, wanted in zip(penalty(ours, x), penalty(own, x), strict=True):
                torch.testing.assert_close(made, wanted, rtol=2e-3, atol=2e-3)

    def test_gradients_of_each_sample_are_torchs_in_a_compiled_graph(self):
        model, x = nn.Sequential(nn.Linear(8, 12), nn.LayerNorm(12), nn.Linear(12, 4), nn.RMSNorm(4)), torch.randn(5, 3, 8)
        of_each = torch.func.vmap(torch.func.grad(lambda x: model(x).square().sum()))
        expected = of_each(x)
        with hone.torch.replace(model):
            for run in (of_each, torch.compile(of_each, backend="aot_eager", fullgraph=True)):
                torch.testing.assert_close(run(x), expected, rtol=1e-3, atol=1e-4)

    def test_a_gradient_of_a_gradient_is_that_of_the_weights_that_the_call_had(self):
        def penalties(model, given, x):
            value = torch.func.functional_call(model, given, x).pow(3).sum()
            gradient, = torch.autograd.grad(value, x, create_graph=True)
            return torch.autograd.grad(gradient.square().sum(), [x, *given.values()])

        x = torch.rand(4, 64, requires_grad=True)
        for make in (lambda: nn.LayerNorm(64), lambda: nn.RMSNorm(64)):
            own, ours = nn.Sequential(make()), nn.Sequential(make())
            given = {name: torch.rand_like(value, requires_grad=True) for name, value in own.named_parameters()}
            hone.torch.replace(ours)
            for made, wanted in zip(penalties(ours, given, x), penalties(own, given, x), strict=True):
                torch.testing.assert_close(made, wanted, rtol=2e-3, atol=2e-3)

    def test_forward_mode_is_torchs(self):
        x = torch.rand(4, 64)
        model = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), Mlp(64, 96))
        value, tangent = torch.func.jvp(model, (x,), (x,))
        replaced = hone.torch.replace(model)
        made = torch.func.jvp(model, (x,), (x,))
        torch.testing.assert_close(made, (value, tangent), rtol=1e-4, atol=1e-4)
        self.assertTrue(all(site.passed == {"forward mode": 1} and site.hits == 0 for site in replaced.sites))

    def test_a_linear_layer_in_float64_is_a_product_of_hones(self):
        own, ours = nn.Linear(8, 5).double(), nn.Linear(8, 5).double()
        ours.load_state_dict(own.state_dict())
        x = torch.rand(3, 8, dtype=torch.float64)
        with hone.torch.replace(ours) as replaced:
            torch.testing.assert_close(ours(x), own(x))
            ours(x).sum().backward()
            own(x).sum().backward()
            self.assertEqual((replaced.sites[0].hits, replaced.sites[0].passed), (2, {}))
        torch.testing.assert_close(ours.weight.grad, own.weight.grad)

    def test_a_script_is_made_of_a_copy(self):
        replaced = hone.torch.replace(self.model)
        with self.assertRaisesRegex(hone.InvalidArgumentError, r"torch.jit.script\(copy.deepcopy\(model\)\)"):
            torch.jit.script(self.model)
        self.assertTrue(all("_hone_site" in vars(site.module) for site in replaced.sites))
        norm = nn.Sequential(nn.LayerNorm(8))
        hone.torch.replace(norm)
        x = torch.rand(2, 8)
        torch.testing.assert_close(torch.jit.script(copy.deepcopy(norm))(x), norm(x))

    def test_copies_and_pickles_are_torchs(self):
        with hone.torch.replace(self.model):
            for copied in (copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))):
                self.assertIs(type(copied.head), nn.Linear)
                self.assertTrue(torch.equal(self.run_model(copied), self.expected))
            self.assertEqual({*self.model.state_dict()}, {*Model().state_dict()})

    def test_what_is_no_model_is_refused(self):
        with self.assertRaisesRegex(hone.InvalidArgumentError, "takes a torch.nn.Module, got function"):
            hone.torch.replace(lambda x: x)
        with hone.torch.replace(self.model), self.assertRaisesRegex(hone.InvalidArgumentError, "already"):
            hone.torch.replace(self.model)
        with self.assertRaisesRegex(hone.InvalidArgumentError, "replace those of the model"):
            hone.torch.replace(torch.jit.script(nn.Linear(2, 2)))


if __name__ == "__main__":
    unittest.main()
