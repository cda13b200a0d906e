import pytest
import torch
from comparing import written_functions
from explained import TERMS, objective, studied
from helpers import MODES

from styletransfer.commands.explain.facts import answers
from styletransfer.commands.explain.study import study


def test_fake_backward_walks_the_first_block_once_per_loss():
    seen = studied("fake_backward")
    block = sum(node.group == "block 1" for node in seen.nodes)
    # The pass from relu1_1 enters conv1_1 and relu1_1; the deeper ones all of block 1.
    entered = [seen.entered(number) for number in (1, 2, 3)]
    assert [one["block 1"] for one in entered] == [2, block, block]
    assert [one["image"] for one in entered] == [1, 1, 1]
    assert sum(one.total() for one in entered) == seen.visits > len(seen.nodes)
    assert [one.root for one in seen.passes] == TERMS


def test_one_pass_enters_every_node_once():
    for mode in ("loss_attribute", "autograd_function"):
        assert [one.root for one in studied(mode).passes] == ["total"]
        assert {node.passes for node in studied(mode).nodes} == {(1,)}


def test_every_mode_has_the_same_trunk():
    def trunk(mode):
        groups = (group for group in studied(mode).groups if group.kind in ("trunk", "image"))
        return [[(node.name, node.layer) for node in group.nodes] for group in groups]

    assert trunk(MODES[0]) == trunk(MODES[1]) == trunk(MODES[2])


def test_a_real_backward_is_a_node_of_the_trunk():
    seen = studied("autograd_function")
    nodes, entered = seen.written("loss")
    assert set(nodes) <= {f"{name}Backward" for name in written_functions()}
    assert nodes.total() == entered == len(TERMS)
    losses = [group for group in seen.groups if group.kind == "loss"]
    assert [(group.name, group.on_trunk) for group in losses] == [(name, True) for name in TERMS]
    for group in losses:
        assert sum(node.is_function for node in group.nodes) == 1


def test_other_losses_hang_beside_the_trunk():
    for mode in ("fake_backward", "loss_attribute"):
        assert studied(mode).written("loss") == ({}, 0)
        losses = [group for group in studied(mode).groups if group.kind == "loss"]
        places = [(group.name, group.at, group.on_trunk) for group in losses]
        blocks = ["block 1", "block 2", "block 2"]
        assert places == [(*place, False) for place in zip(TERMS, blocks, strict=True)]


def test_a_fake_backward_is_no_node_and_autograd_never_enters_it():
    seen = studied("fake_backward")
    assert seen.methods == ("ContentLoss.backward", "StyleLoss.backward")
    assert seen.entered_by_driver == 3
    assert seen.entered_by_autograd == 0
    assert studied("loss_attribute").methods == studied("autograd_function").methods == ()
    assert not any("Loss" in node.name for node in seen.nodes)


def test_a_closed_form_needs_fewer_nodes_and_no_more_memory():
    real, built_in = studied("autograd_function"), studied("loss_attribute")
    assert len(real.nodes) < len(built_in.nodes)
    assert real.kept < built_in.kept


@pytest.mark.parametrize("mode", MODES)
def test_the_trunks_hand_written_backwards_are_entered_in_every_mode(mode):
    # Both losses at relu2_1 have a pass of their own under fake_backward.
    entered = 2 if mode == "fake_backward" else 1
    assert studied(mode).written("trunk") == ({"MaxPoolFunctionBackward": 1}, entered)
    replaced = studied(mode, pooling="average", winograd=True)
    assert replaced.written("trunk") == ({"WinogradConvBackward": 1}, entered)
    assert studied(mode, pooling="average").written("trunk") == ({}, 0)


def test_a_method_that_autograd_does_enter_is_counted(monkeypatch):
    watched = objective("fake_backward")
    for kind in {type(term.module) for term in watched.terms}:
        monkeypatch.setattr(kind, "backward", lambda self, retain_graph=True: self.loss)
    for term in watched.terms:
        # A hook on the loss calls the method, which does nothing now.
        term.module.register_forward_hook(
            lambda module, *_: (
                module.loss.register_hook(lambda grad: module.backward() and None) and None
            )
        )
    seen = study("fake_backward", watched, torch.rand(1, 3, 12, 10, dtype=torch.float64))
    assert seen.entered_by_autograd == len(TERMS)
    assert "Yes: ContentLoss.backward and StyleLoss.backward" in answers(seen)["In the losses"]


def test_fake_backward_still_holds_everything_after_its_last_pass():
    seen = studied("fake_backward")
    assert all(one.retain_graph for one in seen.passes)
    assert {one.held_before for one in seen.passes} == {seen.kept}
    assert {one.held_after for one in seen.passes} == {seen.kept}


def test_one_pass_frees_as_it_goes():
    for mode in ("loss_attribute", "autograd_function"):
        (one,) = studied(mode).passes
        assert not one.retain_graph
        assert one.held_before == studied(mode).kept > 0
        assert one.held_after == 0


def test_separate_passes_fail_without_retain_graph():
    """With it every saved byte is kept, and after a plain backward none."""
    for mode in MODES:
        assert studied(mode).refusal.startswith("torch refuses: trying to backward through the")
        before, retained, freed = studied(mode).retention.values()
        assert before == retained > freed == 0
    # A single loss needs no retained graph.
    alone = objective("fake_backward", content_layers=[], style_layers=["relu2_1"])
    seen = study("fake_backward", alone, torch.rand(1, 3, 12, 10, dtype=torch.float64))
    assert seen.refusal.startswith("works: ")


@pytest.mark.parametrize("mode", MODES)
def test_the_groups_hold_what_the_graph_keeps_and_total_variation_is_one_of_them(mode):
    seen = studied(mode, 0.5)
    assert sum(group.nbytes for group in seen.groups) == seen.kept
    # relu1_1, relu1_2, pool1 with its int64 indices, relu2_1, at 12 x 10 pixels in float64.
    trunk = {group.name: group.nbytes for group in seen.groups if group.kind == "trunk"}
    assert trunk["block 1"] >= 8 * (4 * 120 + 4 * 120 + 4 * 30)
    assert trunk["block 2"] >= 8 * 6 * 30
    # Total variation hangs on the image.
    (prior,) = (group for group in seen.groups if group.name == "total_variation")
    assert (prior.at, prior.on_trunk) == ("image", False)
    expected = [*TERMS, "total_variation"] if mode == "fake_backward" else ["total"]
    assert [one.root for one in seen.passes] == expected


@pytest.mark.parametrize("mode", MODES)
def test_studying_changes_neither_picture_nor_network(mode):
    watched = objective(mode)
    picture = torch.rand(1, 3, 12, 10, dtype=torch.float64)
    point, again = (picture.clone().requires_grad_() for _ in range(2))
    study(mode, watched, picture)
    assert torch.equal(picture, point)
    assert picture.grad is None
    assert all(parameter.grad is None for parameter in watched.network.parameters())
    # The same evaluation, watched before and not, has the same gradient.
    watched.evaluate(point)
    objective(mode).evaluate(again)
    torch.testing.assert_close(point.grad, again.grad, rtol=0, atol=0)
