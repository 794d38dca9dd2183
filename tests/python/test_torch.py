"""The real torch, on the CPU: its tensors in hone.run, and hone's operations in its programs."""

import unittest

import numpy
import torch
import torch.autograd.forward_ad as forward_ad
from torch._subclasses import FakeTensorMode

import hone
from support import HoneTest, arrays, norm

X, W = arrays()
EXPECTED = torch.from_numpy(norm(X, W))


def tensors():
    return torch.from_numpy(X.copy()), torch.from_numpy(W.copy())


class OfAnOlderTorch(torch.Tensor):
    """Tensors that bring no table of C functions, as those of torch before it had one."""

    __dlpack_c_exchange_api__ = None


class Arrays(HoneTest):
    def right(self, y, expected=EXPECTED):
        torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-5)

    def test_tensors_are_taken_as_they_are(self):
        x, w = tensors()
        y = torch.zeros_like(x)
        self.assertIs(hone.run("rms_norm", x, w, y), y)
        self.right(y)
        made = hone.run("rms_norm", x, w)
        self.assertIs(type(made), torch.Tensor)
        self.right(made)
        plan = hone.bind("rms_norm", x, w, y)
        y.zero_()
        plan(x, w, y)
        self.right(y)
        self.right(hone.run("rms_norm", *(one.as_subclass(OfAnOlderTorch) for one in (x, w))))

    def test_strides_and_parts_are_seen(self):
        x, w = tensors()
        wide = torch.zeros(8, 128)
        wide[:, ::2] = x
        self.right(hone.run("rms_norm", wide[:, ::2], w))
        self.right(hone.run("rms_norm", x.t().contiguous().t(), w))
        self.right(hone.run("rms_norm", x[2:5], w), EXPECTED[2:5])
        self.assertEqual(hone.call("rms_norm", wide[:, ::2], w).text, "rms_norm(f32[8,64]{strides=128,2}, f32[64])")
        self.assertEqual(hone.run("rms_norm", x[:0], w).shape, (0, 64))

    def test_a_parameter_is_taken_where_torch_records_nothing(self):
        x, w = tensors()
        parameter = torch.nn.Parameter(w)
        with torch.no_grad():
            self.right(hone.run("rms_norm", x, parameter))
        with torch.inference_mode():
            self.right(hone.run("rms_norm", x, parameter))
            self.right(hone.run("rms_norm", torch.from_numpy(X), parameter))
        for use in (hone.run, hone.bind, hone.call):
            with self.assertRaisesRegex(TypeError, "weight: a tensor of torch that requires grad.*detach.*no_grad"):
                use("rms_norm", x, parameter)
        self.right(hone.run("rms_norm", x, parameter.detach()))

    def test_what_requires_grad_later_is_refused_then(self):
        x, w = tensors()
        for _ in range(4):
            hone.run("rms_norm", x, w)
        w.requires_grad_()
        with self.assertRaisesRegex(TypeError, "requires grad"):
            hone.run("rms_norm", x, w)

    def refused(self, x, words):
        for use in (hone.run, hone.bind, hone.call):
            with self.assertRaisesRegex(TypeError, f"x: .*{words}"):
                use("rms_norm", x, torch.from_numpy(W))

    def test_what_is_not_what_it_looks_like_is_refused_by_name(self):
        x, w = tensors()
        with FakeTensorMode():
            fake = torch.empty(8, 64)
        gone = x.clone()
        gone.untyped_storage().resize_(0)
        for tensor, words in (
            (torch._neg_view(x), "negated.*resolve_neg"),
            (torch.complex(x, x).conj().imag, "negated.*resolve_neg"),
            (torch.complex(x, x).conj(), "conjugated.*resolve_conj"),
            (x.to_sparse(), "layout torch.sparse_coo.*to_dense"),
            (x.to_sparse_csr(), "layout torch.sparse_csr.*to_dense"),
            (x.to_mkldnn(), "layout torch._mkldnn.*to_dense"),
            (x.to("meta"), "meta tensor"),
            (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "quantised.*dequantize"),
            (torch.nested.nested_tensor([x, x[:2]]), "nested tensor"),
            (torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged), "NestedTensor came"),
            (torch._efficientzerotensor((8, 64)), "stands for zeros"),
            (gone, "storage was given up"),
            (fake, "FakeTensor came"),
        ):
            self.refused(tensor, words)
            self.refused(tensor, words)

    def test_tensors_inside_transformations_are_refused_by_name(self):
        x, w = tensors()

        def inside(tensor):
            self.refused(tensor, "inside torch.func")
            return tensor.sum()

        torch.func.vmap(inside)(x)
        torch.func.grad(inside)(x)
        torch.func.functionalize(inside)(x)
        torch.func.jvp(inside, (x,), (x,))
        with forward_ad.dual_level():
            self.refused(forward_ad.make_dual(x, x), "dual tensor")
            self.right(hone.run("rms_norm", x, w))

    def test_a_tensor_that_was_taken_is_looked_at_again(self):
        x, w = tensors()
        for _ in range(4):
            hone.run("rms_norm", x, w)
        negated = torch._neg_view(x.clone())
        x.data = negated
        self.refused(x, "negated")
        for _ in range(300):  # objects that take the place of others
            self.refused(torch._neg_view(torch.ones(8, 64)), "negated")
            hone.run("rms_norm", torch.ones(8, 64), w)

    def test_numpy_and_torch_meet_in_one_call(self):
        x, w = tensors()
        self.right(hone.run("rms_norm", x, W))
        made = hone.run("rms_norm", X, w)
        self.assertIsInstance(made, numpy.ndarray)
        self.right(torch.from_numpy(made))


if __name__ == "__main__":
    unittest.main()
