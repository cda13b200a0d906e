import gc

import numpy as np
import pytest
import torch
from comparing import leaf
from torch import nn
from torch.autograd import Function, gradcheck
from torch.multiprocessing.reductions import StorageWeakRef

from styletransfer.lessons import graph
from styletransfer.losses.squares import content_tap


def small_example():
    """Return a, b, c, d and the result of (a + b) * d, the example in docs/backward.md."""
    a, b, d = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    c = a + b
    return a, b, c, d, c * d


def test_small_example_enters_each_of_its_five_nodes_once():
    *_, e = small_example()
    nodes = graph.walk(graph.root(e))
    names = ["MulBackward0", "AddBackward0", *["AccumulateGrad"] * 3]
    assert [graph.title(node) for node in nodes] == names
    with graph.count_visits(nodes) as visits:
        e.backward()
    assert [visits[node] for node in nodes] == [1] * 5


def test_every_path_ends_at_a_node_that_holds_the_leaf():
    """A walk names each node once, before the nodes that follow it."""
    a, b = leaf(2), leaf(2)
    c = a.exp()
    nodes = graph.walk(graph.root((c * b + c).sum()))
    assert len(nodes) == len(set(nodes)) == 6
    for position, node in enumerate(nodes):
        assert all(following in nodes[position + 1 :] for following in graph.next_nodes(node))
    ends = [node for node in nodes if not graph.next_nodes(node)]
    assert {graph.title(node) for node in ends} == {"AccumulateGrad"}
    assert {id(graph.leaf(node)) for node in ends} == {id(a), id(b)}


def test_gradients_of_several_passes_add_up_in_the_leaf():
    a = leaf(3)
    a.sum().backward()
    (2 * a).sum().backward()
    torch.testing.assert_close(a.grad, torch.full_like(a, 3.0))


def test_a_function_is_a_node_and_a_method_is_not():
    class Fake(nn.Module):
        entered = 0

        def forward(self, x):
            return x * 2

        def backward(self):
            self.entered += 1

    fake = Fake()
    loss = content_tap(fake(leaf(1, 2, 3, 3)), torch.zeros(1, 2, 3, 3).double())[1]
    nodes = graph.walk(graph.root(loss))
    loss.backward()
    functions = [graph.title(node) for node in nodes if graph.is_python_function(node)]
    assert (len(nodes), functions) == (3, ["ContentTapBackward"])
    assert fake.entered == 0


@pytest.mark.parametrize("retain_graph", [False, True])
def test_backward_frees_unless_the_graph_is_retained(retain_graph):
    b = leaf(1000).exp()  # the nodes of exp and square save b
    storage, loss = StorageWeakRef(b.untyped_storage()), b.square().sum()
    del b
    loss.backward(retain_graph=retain_graph)
    gc.collect()
    assert storage.expired() is not retain_graph


def test_the_last_reference_to_the_graph_frees_a_retained_one():
    b = leaf(1000).exp()
    storage, loss = StorageWeakRef(b.untyped_storage()), b.square().sum()
    loss.backward(retain_graph=True)
    del b, loss
    gc.collect()
    assert storage.expired()


class Exp(Function):
    """e^x, computed with NumPy, which autograd does not record."""

    @staticmethod
    def forward(ctx, x):
        result = torch.from_numpy(np.exp(x.numpy()))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


def test_a_function_mends_a_graph_that_numpy_cuts():
    x = leaf(3)
    cut = torch.from_numpy(np.exp(x.detach().numpy()))
    with pytest.raises(RuntimeError, match="not require gradients"):
        graph.root(cut)
    assert gradcheck(Exp.apply, x)


class Softplus(Function):
    """log(1 + e^x), with the derivative 1 / (1 + e^-x), which never overflows."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + (-x.abs()).exp().log1p()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.sigmoid()


def test_a_closed_form_can_be_stable_where_autograd_is_not():
    x = torch.tensor([800.0], dtype=torch.float64, requires_grad=True)
    (naive,) = torch.autograd.grad((1 + x.exp()).log().sum(), x)
    (stable,) = torch.autograd.grad(Softplus.apply(x).sum(), x)
    assert naive.isnan()
    assert stable == 1
    assert gradcheck(Softplus.apply, leaf(3))


def test_grad_of_a_non_leaf_is_none_unless_retained():
    a = leaf()
    b, c = a * 2, a * 3
    c.retain_grad()
    (b + c).backward()
    assert a.grad == 5
    assert c.grad == 1
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert b.grad is None
    a, b, c, d, e = small_example()
    e.backward()
    assert [tensor.grad for tensor in (a, b, d)] == [4, 4, 5]
    assert [graph.title(graph.root(tensor)) for tensor in (c, d)] == [
        "AddBackward0",
        "AccumulateGrad",
    ]
