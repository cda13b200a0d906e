import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function, gradcheck
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef

from styletransfer.commands.explain.small_example import CODE, small_example
from styletransfer.errors import UserError
from styletransfer.functions import content_tap
from styletransfer.lessons import graph, relu


def leaf(*shape: int) -> Tensor:
    return torch.rand(shape, dtype=torch.float64, requires_grad=True)


def network() -> nn.Module:
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(64, 2)).double().requires_grad_(False)


# The small example: (a + b) * d.


def test_small_example_has_gradients_4_4_5_and_none_on_the_intermediate() -> None:
    variables = {one.name: (one.value, one.grad) for one in small_example().variables}
    assert variables == {
        "a": (2, 4),
        "b": (3, 4),
        "d": (4, 5),
        "c": (5, None),
        "e": (20, None),
    }


def test_small_example_enters_each_of_its_five_nodes_once() -> None:
    example = small_example()
    assert [node.name for node in example.nodes] == [
        "MulBackward0",
        "AddBackward0",
        "AccumulateGrad of a",
        "AccumulateGrad of b",
        "AccumulateGrad of d",
    ]
    assert example.visits == 5


def test_small_example_runs_as_printed() -> None:
    scope: dict[str, Tensor] = {}
    exec(CODE, {"torch": torch}, scope)
    assert scope["e"] == 20
    assert [scope[name].grad for name in "abd"] == [4, 4, 5]


# Walking.


def test_every_path_ends_at_an_accumulate_grad_that_holds_the_very_leaf() -> None:
    a, b = leaf(2), leaf(2)
    nodes = graph.walk(graph.root((a * b).sum()))
    ends = [node for node in nodes if not graph.next_nodes(node)]
    assert {graph.title(node) for node in ends} == {"AccumulateGrad"}
    assert {id(graph.leaf(node)) for node in ends} == {id(a), id(b)}
    assert sorted(graph.leaf_names(nodes, {"a": a}).values()) == ["a", "a leaf (2,)"]


def test_backward_changes_a_grad_through_the_graph_without_being_told_of_a() -> None:
    a = leaf(3)
    loss = a.square().sum()
    loss.backward()
    assert a.grad is not None
    torch.testing.assert_close(a.grad, 2 * a.detach())


def test_gradients_of_several_passes_add_up_in_the_leaf() -> None:
    a = leaf(3)
    a.sum().backward()
    (2 * a).sum().backward()
    torch.testing.assert_close(a.grad, torch.full_like(a, 3.0))


def test_walk_names_each_node_once_and_before_those_it_leads_to() -> None:
    a = leaf(2)
    b = a.exp()
    nodes = graph.walk(graph.root((b * b + b).sum()))
    assert len(nodes) == len(set(nodes)) == 5
    for position, node in enumerate(nodes):
        assert all(following in nodes[position + 1 :] for following in graph.next_nodes(node))


def test_walk_of_a_long_chain_needs_no_recursion() -> None:
    a = leaf()
    b = a
    for _ in range(5000):
        b = b + 1
    assert len(graph.walk(graph.root(b))) == 5001


def test_a_leaf_is_its_own_root() -> None:
    a = leaf()
    (node,) = graph.walk(graph.root(a))
    assert graph.leaf(node) is a


@pytest.mark.parametrize("separate", [False, True])
def test_a_walk_reaches_exactly_what_a_pass_enters(separate: bool) -> None:
    image = leaf(1, 3, 8, 8)
    output = network()(image)
    losses = [output.square().mean(), output.abs().sum()]
    with graph.count_visits(graph.walk(*map(graph.root, losses))) as visits:
        if separate:
            for loss in losses:
                loss.backward(retain_graph=True)
        else:
            torch.autograd.backward(losses)
    trunk = graph.walk(graph.root(output))
    assert {visits[node] for node in trunk} == {2 if separate else 1}
    expected = [node for loss in losses for node in graph.walk(graph.root(loss))]
    assert visits.total() == (len(expected) if separate else len(set(expected)))


def test_visits_are_counted_inside_the_block_only() -> None:
    loss = leaf(2).sum()
    with graph.count_visits(graph.walk(graph.root(loss))) as visits:
        pass
    loss.backward()
    assert not visits


def test_a_function_is_a_node_and_a_method_called_backward_is_not() -> None:
    class Fake(nn.Module):
        entered = 0

        def forward(self, x: Tensor) -> Tensor:
            return x * 2

        def backward(self) -> None:
            self.entered += 1

    fake = Fake()
    loss = relu(fake(leaf(3))).sum()
    nodes = graph.walk(graph.root(loss))
    loss.backward()
    assert [graph.title(node) for node in nodes] == [
        "SumBackward0",
        "ReLUFunctionBackward",
        "MulBackward0",
        "AccumulateGrad",
    ]
    assert [graph.is_python_function(node) for node in nodes] == [False, True, False, False]
    assert fake.entered == 0


# SavedTensor tensors.


def hooked(forward: Callable[[], Tensor]) -> tuple[Tensor, dict[int, int]]:
    """Run `forward`; return its result, and storage -> bytes as the saved tensor hooks see them."""
    packed: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        packed.append(tensor.detach())
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    memory = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in packed}
    return result, memory


@pytest.mark.parametrize("kind", ["built-in", "function"])
def test_saved_tensors_are_those_that_torchs_hooks_see(kind: str) -> None:
    image, layers = leaf(1, 3, 8, 8), network()[:3]  # type: ignore[index]
    target = torch.zeros(1, 4, 4, 4, dtype=torch.float64)

    def forward() -> Tensor:
        features = layers(image)
        return content_tap(features, target)[1] if kind == "function" else features.square().mean()

    loss, memory = hooked(forward)
    nodes = graph.walk(graph.root(loss))
    found = {one.storage: one.nbytes for node in nodes for one in graph.saved(node)}
    assert found == memory
    assert graph.held(nodes) == sum(memory.values())


def test_shared_memory_is_counted_once() -> None:
    a = leaf(10)
    b = a.exp()  # ExpBackward keeps its result b
    loss = (b * b.view(2, 5).view(10)).sum()  # MulBackward keeps b and a view of it
    nodes = graph.walk(graph.root(loss))
    assert sum(len(graph.saved(node)) for node in nodes) == 3
    assert graph.held(nodes) == 10 * 8
    assert graph.held(nodes, graph.storages([b])) == 0


def test_an_inplace_relu_adds_no_memory_of_its_own() -> None:
    image = leaf(1, 3, 8, 8)
    layers = network()
    output = layers[:2](image)  # type: ignore[index]
    nodes = graph.walk(graph.root(output))
    lent = graph.storages([image, *layers.parameters()])
    assert graph.held(nodes, lent) == output.numel() * 8


@pytest.mark.parametrize("retain_graph", [False, True])
def test_backward_frees_unless_the_graph_is_retained(retain_graph: bool) -> None:
    loss = network()(leaf(1, 3, 8, 8)).square().sum()
    nodes = graph.walk(graph.root(loss))
    before = graph.held(nodes)
    loss.backward(retain_graph=retain_graph)
    assert before > 0
    assert graph.held(nodes) == (before if retain_graph else 0)
    assert any(map(graph.is_freed, nodes)) is not retain_graph


@pytest.mark.parametrize("retain_graph", [False, True])
def test_what_no_node_holds_is_really_gone(retain_graph: bool) -> None:
    a = leaf(1000)
    b = a.exp()
    storage = StorageWeakRef(b.untyped_storage())
    loss = b.square().sum()
    del b
    nodes = graph.walk(graph.root(loss))
    loss.backward(retain_graph=retain_graph)
    gc.collect()
    assert storage.expired() is not retain_graph
    assert (graph.held(nodes) > 0) is retain_graph


def test_the_last_reference_to_the_graph_frees_a_retained_one() -> None:
    b = leaf(1000).exp()
    storage = StorageWeakRef(b.untyped_storage())
    loss = b.square().sum()
    loss.backward(retain_graph=True)
    del b, loss
    gc.collect()
    assert storage.expired()


def test_walking_keeps_no_tensor_alive_once_the_nodes_are_gone() -> None:
    a = leaf(3)
    reference = weakref.ref(a)
    graph.walk(graph.root(a.exp()))
    del a
    gc.collect()
    assert reference() is None


# When a Function earns its place.


class Exp(Function):
    """e^x by NumPy, which autograd cannot see."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = torch.from_numpy(np.exp(x.numpy()))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (result,) = ctx.saved_tensors
        gradient: Tensor = grads[0] * result
        return gradient


def test_a_detour_through_numpy_cuts_the_graph_and_a_function_mends_it() -> None:
    x = leaf(3)
    cut = torch.from_numpy(np.exp(x.detach().numpy()))
    with pytest.raises(UserError, match="nothing it was computed from requires grad"):
        graph.root(cut)
    assert gradcheck(Exp.apply, x)


class Softplus(Function):
    """log(1 + e^x), whose slope 1 / (1 + e^-x) never overflows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0) + (-x.abs()).exp().log1p()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        gradient: Tensor = grads[0] * x.sigmoid()
        return gradient


def test_a_closed_form_can_be_stable_where_autograd_is_not() -> None:
    x = torch.tensor([800.0], dtype=torch.float64, requires_grad=True)
    (naive,) = torch.autograd.grad((1 + x.exp()).log().sum(), x)
    (stable,) = torch.autograd.grad(Softplus.apply(x).sum(), x)
    assert naive.isnan()
    assert stable == 1
    assert gradcheck(Softplus.apply, leaf(3))


# Leaf or not, and why .grad is None.


def test_grad_of_a_non_leaf_is_none_unless_retained() -> None:
    a = leaf()
    b, c = a * 2, a * 3
    c.retain_grad()
    (b + c).backward()
    assert a.grad == 5
    assert c.grad == 1
    assert "b is no leaf (MulBackward0 made it)" in graph.explain_grad(b, "b")
    assert "b.grad is None" in graph.explain_grad(b, "b")
    assert "c.retain_grad() keeps its .grad" in graph.explain_grad(c, "c")


def test_explain_grad_of_leaves() -> None:
    a = leaf()
    assert "no backward has reached" in graph.explain_grad(a, "a")
    a.exp().backward()
    assert "AccumulateGrad adds" in graph.explain_grad(a, "a")
    assert "stays None" in graph.explain_grad(torch.zeros(2), "x")
    assert "int64" in graph.explain_grad(torch.tensor(3), "i")


# Bad input.


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.arange(3), "image has no graph: it holds int64 values, and only floating point"),
        (torch.ones(3), "image has no graph: nothing it was computed from requires grad"),
        (torch.ones(3, requires_grad=True).exp().detach(), r"no_grad\(\) or by detach\(\)"),
    ],
)
def test_a_tensor_without_a_graph_is_explained(tensor: Tensor, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        graph.root(tensor, "image")
    assert "\n" not in str(caught.value)


def test_a_graph_already_freed_is_explained() -> None:
    loss = leaf(3).exp().square().sum()
    nodes = graph.walk(graph.root(loss))
    graph.check_alive(nodes)
    loss.backward()
    with pytest.raises(UserError, match=r"already freed.* run forward again, or pass retain_graph"):
        graph.check_alive(nodes)
    assert [graph.saved(node) for node in nodes] == [()] * len(nodes)


def test_a_kept_tensor_changed_in_place_is_explained() -> None:
    b = leaf(3).exp()
    node = graph.root(b.square())
    with torch.no_grad():
        b += 1
    with pytest.raises(UserError, match=r"PowBackward0 kept a tensor .* changed in place"):
        graph.saved(node)
