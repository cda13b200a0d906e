import pytest
import torch
from comparing import leaf
from torch import nn
from torch.autograd.function import BackwardCFunction

from styletransfer.lessons import graph
from styletransfer.losses import ContentDistance


def test_small_example_enters_each_of_its_five_nodes_once():
    """It is that of docs/course/graph.md."""
    a, b, d = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    e = (a + b) * d
    nodes = graph.walk(graph.root(e))
    names = ["MulBackward0", "AddBackward0", *["torch::autograd::AccumulateGrad"] * 3]
    assert [node.name() for node in nodes] == names
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
        assert all(following in nodes[position + 1 :] for following, _ in node.next_functions)
    ends = [node for node in nodes if not node.next_functions]
    assert {node.name() for node in ends} == {"torch::autograd::AccumulateGrad"}
    assert {id(node.variable) for node in ends} == {id(a), id(b)}
    with pytest.raises(RuntimeError, match="not require gradients"):
        graph.root(a.detach())


def test_a_function_is_a_node_and_a_method_is_not():
    class Fake(nn.Module):
        entered = 0

        def forward(self, x):
            return x * 2

        def backward(self):
            self.entered += 1

    fake = Fake()
    _, loss = ContentDistance(torch.zeros(1, 2, 3, 3).double()).tap(fake(leaf(1, 2, 3, 3)))
    nodes = graph.walk(graph.root(loss))
    loss.backward()
    functions = [node.name() for node in nodes if isinstance(node, BackwardCFunction)]
    assert (len(nodes), functions) == (3, ["ContentTapBackward"])
    assert fake.entered == 0
