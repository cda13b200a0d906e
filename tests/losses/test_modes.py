"""The four loss modes, compared with formulas and with each other."""

import pytest
import torch
from helpers import MODES, gradient, make_objective, picture, relative_error, tiny_network
from torch import nn

from styletransfer.losses import (
    LOSS_MODES,
    STYLE_LOSSES,
    WASSERSTEIN,
    ContentDistance,
    MatchDistance,
    StyleDistance,
    total_variation,
)
from styletransfer.losses.fake_backward import FakeBackward
from styletransfer.losses.moments import gram_matrix, moments
from styletransfer.losses.style import MomentsTap
from styletransfer.losses.tensor_hook import TensorHook

LOSS_LAYERS = ["conv1_1", "relu1_1", "conv1_2", "relu1_2", "pool1", "conv2_1", "relu2_1", "relu2_2"]


def gram_loss(f, a):
    """Return the style loss of Gatys et al. 2016 for features f and a target Gram matrix a."""
    return (gram_matrix(f) - a).square().mean()


def out_of_place(network, image, layers):
    """Return layer -> activation of the network, computed without in-place operations."""
    found, x = {}, network.preprocess(image)
    for name, layer in network.layers.items():
        x = torch.relu(x) if isinstance(layer, nn.ReLU) else layer(x)
        found[name] = x
    return {layer: found[layer] for layer in layers}


@pytest.mark.parametrize("mode", MODES)
def test_a_loss_layer_returns_its_input_and_has_constants(mode):
    f, direction = picture(0), picture(2)
    for distance in (
        ContentDistance(picture(1).requires_grad_()),
        MatchDistance(picture(1).requires_grad_()),
        StyleDistance(gram_matrix(picture(1))),
    ):
        module = LOSS_MODES[mode].layer(distance, 4.0)
        leaf = f.clone().requires_grad_()
        out = module(leaf)
        assert torch.equal(out, f)
        out.backward(direction)
        if mode == "tensor_hook":  # a second pass: the first forward left no hook on the leaf
            first, leaf.grad = leaf.grad, None
            module(leaf).backward(direction)
            assert torch.equal(leaf.grad, first)
            assert not torch.equal(leaf.grad, direction)
        else:
            assert torch.equal(leaf.grad, direction)
        buffers = dict(module.named_buffers())  # which move with the network
        assert any(name.endswith("target") for name in buffers)
        assert not any(buffer.requires_grad for buffer in buffers.values())
        assert not list(module.parameters())


@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
@pytest.mark.parametrize("mode", MODES)
def test_in_bfloat16_gradients_point_the_same_way(mode, style_loss, network, content, style):
    image, settings = picture(seed=3), {"style_loss": style_loss}
    wanted = gradient(make_objective(mode, network, content, style, **settings), image)
    low = tiny_network().bfloat16()
    objective = make_objective(mode, low, content.float(), style.float(), **settings)
    layers = [getattr(term.module, "distance", term.module) for term in objective.terms]
    targets = [layer.target.dtype for layer in layers]
    exact = torch.float64 if style_loss == "wasserstein" else torch.float32
    assert targets == [exact, torch.bfloat16, exact]
    leaf = image.float().requires_grad_()
    losses = objective.evaluate(leaf)
    assert {value.dtype for value in losses.terms.values()} == {torch.float32}
    assert not any(value.requires_grad for value in losses.terms.values())
    assert leaf.grad.dtype == torch.float32
    assert torch.cosine_similarity(leaf.grad.double().flatten(), wanted.flatten(), dim=0) > 0.98


@pytest.mark.parametrize("normalization", ["target", "none"])
@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
def test_all_modes_have_losses_and_gradient_of_the_formula(
    network, content, style, style_loss, normalization
):
    """The formula is written out and differentiated by autograd."""
    factors, tv_weight = [0.25, 7.0, 0.5], 3.0
    layers = ["conv2_1", "relu1_1", "conv1_2", "relu2_2"]
    settings = {"style_loss": style_loss, "normalization": normalization, "tv_weight": tv_weight}
    settings |= {"content_layers": layers[:1], "style_layers": layers[1:]}
    settings |= {"style_layer_weights": factors}
    leaf, measure = picture(seed=3).requires_grad_(), STYLE_LOSSES[style_loss]
    f, p, s = (out_of_place(network, x, layers) for x in (leaf, content, style))

    def relative(loss, of_nothing):
        return loss / of_nothing if normalization == "target" else loss

    missed = (f["conv2_1"] - p["conv2_1"]).square().mean()
    expected = {"content/conv2_1": 0.5 * relative(missed, p["conv2_1"].square().mean())}
    for layer, factor in zip(layers[1:], factors, strict=True):
        of_style = measure.statistic(moments(s[layer]))
        a = measure.prepare(of_style)
        of_nothing = measure.compare(torch.zeros_like(of_style), a)
        loss = measure.compare(measure.statistic(moments(f[layer])), a)
        expected[f"style/{layer}"] = 2.0 * factor * relative(loss, of_nothing)
    expected["total_variation"] = tv_weight * total_variation(leaf)
    expected["total"] = sum(expected.values())
    (slope,) = torch.autograd.grad(expected["total"], leaf)
    for mode in MODES:
        objective = make_objective(mode, network, content, style, **settings)
        image = leaf.detach().clone().requires_grad_()
        found = objective.evaluate(image).as_floats()
        values = {name: value.item() for name, value in expected.items()}
        assert found == pytest.approx(values, rel=1e-10), mode
        assert relative_error(image.grad, slope) < 1e-10, mode


@pytest.mark.parametrize("mode", MODES)
def test_layers_of_one_loss_keep_their_own_values(mode):
    """Objectives of several pictures share the losses of one style."""
    distance = ContentDistance(picture(1))
    far, near = (LOSS_MODES[mode].layer(distance, 1.0) for _ in range(2))
    far(picture(0))
    near(picture(1))
    assert far.loss > near.loss == 0
    assert not hasattr(distance, "loss")


def test_a_weight_acts_squared_in_fake_backward():
    f, p, a = picture(0), picture(1), gram_matrix(picture(1))
    b = WASSERSTEIN.statistic(moments(p))
    for module, loss in (
        (FakeBackward(ContentDistance(p), 3.0), (f - p).square().mean()),
        (FakeBackward(StyleDistance(a), 3.0), gram_loss(f, a)),
        (
            FakeBackward(StyleDistance(b, WASSERSTEIN), 3.0),
            WASSERSTEIN.loss(moments(f), WASSERSTEIN.prepare(b)),
        ),
        (FakeBackward(MatchDistance(p), 3.0), 1 - torch.cosine_similarity(f, p, dim=1).mean()),
    ):
        module(f)
        torch.testing.assert_close(module.loss, 9 * loss, rtol=1e-12, atol=0)


def counted(monkeypatch, kind, entries, wrap=lambda function: function):
    """Append the class name to `entries` at each call of the backward of class `kind`."""
    original = kind.backward

    def counting(*args, **kwargs):
        entries.append(kind.__name__)
        return original(*args, **kwargs)

    monkeypatch.setattr(kind, "backward", wrap(counting))


def test_autograd_never_enters_fake_backward(network, content, style, monkeypatch):
    entries: list[str] = []
    counted(monkeypatch, MomentsTap, entries, staticmethod)
    counted(monkeypatch, FakeBackward, entries)
    gradient(make_objective("autograd_function", network, content, style), picture(seed=3))
    assert entries == ["MomentsTap", "MomentsTap"]
    entries.clear()
    objective = make_objective("fake_backward", network, content, style)
    leaf = picture(seed=3).requires_grad_()
    out = objective.network(leaf)
    (out.sum() + sum(term.module.loss for term in objective.terms)).backward()
    assert leaf.grad.norm() > 0  # autograd has differentiated the whole network
    assert entries == []  # autograd has called no backward of a loss module
    objective.evaluate(leaf)
    assert entries == ["FakeBackward"] * 3  # `evaluate` calls each once
    assert not any(hasattr(term.module, "loss") for term in objective.terms)  # no graph stays


@pytest.mark.parametrize("mode", MODES)
def test_backward_calls_per_evaluation(mode, network, content, style, monkeypatch):
    objective = make_objective(mode, network, content, style, tv_weight=1.0)
    calls: list[str] = []
    counted(monkeypatch, torch.Tensor, calls)
    objective.evaluate(picture(seed=3).requires_grad_())
    expected = {"fake_backward": len(objective.terms) + 1, "tensor_hook": 2}  # 1: pixel losses
    assert len(calls) == expected.get(mode, 1)
    assert all(weight.grad is None for weight in network.parameters())


def test_taps_survive_inplace_relu(network):
    """Each layer equals that of a network without in-place operations, also before a ReLU."""
    image = picture(seed=3)
    expected = out_of_place(network, image, LOSS_LAYERS)
    for layer in LOSS_LAYERS:
        for wanted in ([layer], [layer, "relu2_2"]):
            actual = network(image, wanted)
            assert all(torch.equal(actual[name], expected[name]) for name in wanted)


def test_a_loss_with_a_hook_has_no_graph(network, content, style):
    objective = make_objective("tensor_hook", network, content, style)
    leaf = picture(seed=3).requires_grad_()
    output = objective.network(leaf)
    for term in objective.terms:
        with pytest.raises(RuntimeError, match="does not require grad"):
            term.module.loss.backward()
    output.sum().backward()  # another backward also adds the hooks' gradients
    alone = picture(seed=3).requires_grad_()
    network(alone, ["relu2_1"])["relu2_1"].sum().backward()
    expected = gradient(objective, picture(seed=3))
    assert relative_error(leaf.grad - alone.grad, expected) < 1e-10


@pytest.mark.parametrize("mode", ["autograd_function", "tensor_hook"])
def test_an_inplace_change_after_a_loss_layer_is_an_error(mode):
    """The layer computes its gradient from the features, which the change would falsify."""
    for distance in (
        ContentDistance(picture(1)),
        MatchDistance(picture(1)),
        StyleDistance(gram_matrix(picture(1))),
    ):
        image = picture(0).requires_grad_()
        layer = LOSS_MODES[mode].layer(distance, 4.0)
        with pytest.raises(RuntimeError, match=r"modified (by an )?in.?place"):
            layer(image * 1).relu_().sum().backward()


def test_a_hook_keeps_the_graph_of_the_gradient_that_it_gets():
    """Its own part is a constant for a second derivative, which calls the hook once more."""
    image, target = picture(0).requires_grad_(), picture(1)
    output = TensorHook(ContentDistance(target), 4.0)(image * 1)
    (slope,) = torch.autograd.grad(output.pow(3).sum(), image, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), image)
    torch.testing.assert_close(slope, 3 * image**2 + 8 * (image - target) / image.numel())
    torch.testing.assert_close(second, 6 * image + 8 * (image - target) / image.numel())


@pytest.mark.cuda
@pytest.mark.parametrize("mode", MODES)
def test_gradients_agree_on_a_gpu(mode, network, content, style):
    expected = gradient(make_objective(mode, network, content, style), picture(seed=3))
    network.to("cuda")
    objective = make_objective(mode, network, content.cuda(), style.cuda())
    assert relative_error(gradient(objective, picture(seed=3).cuda()).cpu(), expected) <= 1e-10
