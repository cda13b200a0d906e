"""The three loss modes: each against its formula, and all against one another."""

import dataclasses
from itertools import product

import pytest
import torch
from helpers import (
    MODES,
    gradient,
    layers,
    make_objective,
    picture,
    relative_error,
    run_settings,
    tiny_network,
)
from torch import nn

from styletransfer.errors import UserError
from styletransfer.features import build_features
from styletransfer.functions import MomentsTap, gram_matrix
from styletransfer.functions.moments import moments
from styletransfer.job.job import Job
from styletransfer.losses import (
    GRAM,
    STYLE_LOSSES,
    content_loss,
    total_variation,
)
from styletransfer.modes import LOSS_MODES, fake_backward, get_loss_mode, loss_attribute
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.optimize.run import complete_run

LOSS_LAYERS = ["conv1_1", "relu1_1", "conv1_2", "relu1_2", "pool1", "conv2_1", "relu2_1", "relu2_2"]


def features(seed=0, channels=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, channels, 5, 7, generator=generator, dtype=torch.float64)


def style_loss(features, target):
    """The style loss of Gatys et al. 2016, with a Gram matrix for a target."""
    return GRAM.loss(moments(features), target)


def out_of_place(network, image, layers):
    """The layers of a network that has no in-place layer at all."""
    found = {}
    x = network.preprocess(image)
    for name, layer in network.layers.items():
        x = torch.relu(x) if isinstance(layer, nn.ReLU) else layer(x)
        found[name] = x
    return {layer: found[layer] for layer in layers}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_modules_compute_the_formula(mode, weight):
    f, p, a = features(0), features(1), gram_matrix(features(1))
    inside = weight if mode == "fake_backward" else 1.0
    content, style = (
        LOSS_MODES[mode].content(p, weight),
        LOSS_MODES[mode].style(a, weight, GRAM, None),
    )
    content(f), style(f)
    assert torch.allclose(content.loss, inside * content_loss(f, p), rtol=1e-12)
    assert torch.allclose(style.loss, inside * style_loss(f, a), rtol=1e-12)


# What the modules are made of.


def loss_module(mode, kind, target):
    """A content or a Gram loss of weight 2."""
    make = LOSS_MODES[mode]
    return make.content(target, 2.0) if kind == "content" else make.style(target, 2.0, GRAM, None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["content", "style"])
def test_modules_are_transparent(mode, kind):
    f = features().requires_grad_()
    target = features(1) if kind == "content" else gram_matrix(features(1))
    module = loss_module(mode, kind, target)
    out = module(f)
    assert torch.equal(out, f)
    direction = features(2)
    out.backward(direction)
    assert torch.equal(f.grad, direction)


@pytest.mark.parametrize("mode", MODES)
def test_network_with_losses_returns_what_it_returns_without(mode, network, content, style):
    objective = make_objective(mode, network, content, style)
    plain = out_of_place(network, content, ["relu2_1"])["relu2_1"]
    assert torch.equal(objective.network(content), plain)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["content", "style"])
def test_targets_are_buffers(mode, kind):
    target = features(1) if kind == "content" else gram_matrix(features(1))
    module = loss_module(mode, kind, target.requires_grad_())
    assert dict(module.named_buffers()).keys() == {"target"}
    assert not module.target.requires_grad
    assert module.target.grad_fn is None
    assert not list(module.parameters())
    assert module.to(torch.float32).target.dtype == torch.float32
    assert module.to("meta").target.device.type == "meta"


@pytest.mark.parametrize("mode", MODES)
def test_gram_matrices_stay_float32_in_a_bfloat16_network(mode, content, style):
    network = tiny_network().bfloat16()
    objective = make_objective(mode, network, content.float(), style.float())
    targets = {term.name: term.module.target.dtype for term in objective.terms}
    assert targets == {
        "style/relu1_1": torch.float32,
        "content/relu2_1": torch.bfloat16,
        "style/relu2_1": torch.float32,
    }
    leaf = content.float().requires_grad_()
    losses = objective.evaluate(leaf)
    assert {value.dtype for value in losses.terms.values()} == {torch.float32}
    assert leaf.grad.dtype == torch.float32
    assert leaf.grad.isfinite().all()


@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
@pytest.mark.parametrize("mode", MODES)
def test_bfloat16_gradient_points_the_same_way(mode, style_loss, network, content, style):
    image, settings = picture(seed=3), {"style_loss": style_loss}
    exact = gradient(make_objective(mode, network, content, style, **settings), image)
    low = tiny_network().bfloat16()
    rough = gradient(
        make_objective(mode, low, content.float(), style.float(), **settings), image.float()
    ).double()
    assert torch.cosine_similarity(rough.flatten(), exact.flatten(), dim=0) > 0.98


def test_unknown_mode_is_named():
    with pytest.raises(UserError, match=r"unknown loss mode 'magic'; choose .*fake_backward"):
        get_loss_mode("magic")


@pytest.mark.parametrize("kind", [fake_backward.ContentLoss, fake_backward.StyleLoss])
def test_fake_backward_needs_a_forward_first(kind):
    with pytest.raises(RuntimeError, match=r"backward\(\) was called before forward"):
        kind(features(), 1.0).backward()


# One objective, three gradients.


@pytest.mark.parametrize(
    ("style_loss", "normalization", "tv_weight", "factors"),
    list(product(STYLE_LOSSES, ["target", "none"], [0.0, 3.0], [[], [0.25, 7.0, 0.5]])),
)
def test_gradients_agree(network, content, style, style_loss, normalization, tv_weight, factors):
    settings = {
        "style_loss": style_loss,
        "normalization": normalization,
        "tv_weight": tv_weight,
        "content_layers": ["conv2_1"],
        "style_layers": ["relu1_1", "conv1_2", "relu2_2"],
        "style_layer_weights": factors,
    }
    image = picture(seed=3)
    found = {
        mode: gradient(make_objective(mode, network, content, style, **settings), image)
        for mode in MODES
    }

    # The same written out, with nothing but autograd.
    layers = ["conv2_1", "relu1_1", "conv1_2", "relu2_2"]
    leaf = image.clone().requires_grad_()
    f, p, s = (out_of_place(network, x, layers) for x in (leaf, content, style))

    measure = STYLE_LOSSES[style_loss]

    def relative(loss, of_nothing):
        return loss / of_nothing if normalization == "target" else loss

    missed = ((f["conv2_1"] - p["conv2_1"]) ** 2).mean()
    total = 0.5 * relative(missed, (p["conv2_1"] ** 2).mean())
    for layer, factor in zip(layers[1:], factors or [1.0] * 3, strict=True):
        a = measure.statistic(moments(s[layer]))
        of_nothing = measure.distance(torch.zeros_like(a), a)
        loss = measure.distance(measure.statistic(moments(f[layer])), a)
        total = total + 2.0 * factor * relative(loss, of_nothing)
    total = total + tv_weight * total_variation(leaf)
    (expected,) = torch.autograd.grad(total, leaf)

    for mode, actual in found.items():
        assert relative_error(actual, expected) <= 1e-10, mode


@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
@pytest.mark.parametrize("mode", MODES)
def test_losses_agree(mode, style_loss, network, content, style):
    image = picture(seed=3)
    settings = {"tv_weight": 3.0, "style_layer_weights": [0.25, 7.0], "style_loss": style_loss}
    actual, expected = (
        make_objective(name, network, content, style, **settings)
        .evaluate(image.clone().requires_grad_())
        .as_floats()
        for name in (mode, "loss_attribute")
    )
    assert actual == pytest.approx(expected, rel=1e-12)


def test_weight_acts_squared_in_fake_backward(network, content, style, monkeypatch):
    f, p, a = features(0), features(1), gram_matrix(features(1))
    for module, loss in (
        (fake_backward.ContentLoss(p, 3.0), content_loss(f, p)),
        (fake_backward.StyleLoss(a, 3.0), style_loss(f, a)),
    ):
        module(f)
        assert torch.allclose(module.loss, 9 * loss, rtol=1e-12)

    # So the builder hands over square roots ...
    assert fake_backward.MODE.content(p, 9.0).weight == 3.0
    assert fake_backward.MODE.style(a, 9.0, GRAM, None).weight == 3.0
    image = picture(seed=3)
    settings = {"style_weight": 9.0, "content_weight": 4.0}
    linear = gradient(make_objective("loss_attribute", network, content, style, **settings), image)
    rooted = gradient(make_objective("fake_backward", network, content, style, **settings), image)
    assert relative_error(rooted, linear) <= 1e-10

    # ... and without them it would be another objective.
    rootless = dataclasses.replace(
        fake_backward.MODE, content=fake_backward.ContentLoss, style=fake_backward.StyleLoss
    )
    monkeypatch.setitem(LOSS_MODES, "fake_backward", rootless)
    wrong = gradient(make_objective("fake_backward", network, content, style, **settings), image)
    assert relative_error(wrong, linear) > 1


def test_historic_constants_are_one_objective(network, content, style):
    """1000 inside the 0.3 tutorial's modules, and 1e6 outside the 0.4 tutorial's."""
    a = gram_matrix(network(style, ["conv2_1"])["conv2_1"])
    old, new = fake_backward.StyleLoss(a, 1000), loss_attribute.StyleLoss(a)
    gradients = []
    for module in (old, new):
        leaf = content.clone().requires_grad_()
        module(network(leaf, ["conv2_1"])["conv2_1"])
        if module is old:
            module.backward()
        else:
            (1_000_000 * module.loss).backward()
        gradients.append(leaf.grad)
    assert torch.allclose(old.loss, 1_000_000 * new.loss, rtol=1e-12)
    assert relative_error(*gradients) <= 1e-10


# Who calls backward, and how often.


def count_fake_entries(monkeypatch):
    """Count every entry into a fake module's backward, whoever calls it."""
    entries = []
    for kind in (fake_backward.ContentLoss, fake_backward.StyleLoss):
        original = kind.backward

        def counting(self, retain_graph=True, original=original):
            entries.append(type(self).__name__)
            return original(self, retain_graph)

        monkeypatch.setattr(kind, "backward", counting)
    return entries


def test_autograd_never_enters_fake_backward(network, content, style, monkeypatch):
    entries = count_fake_entries(monkeypatch)
    objective = make_objective("fake_backward", network, content, style)
    leaf = picture(seed=3).requires_grad_()
    out = objective.network(leaf)
    (out.sum() + sum(term.module.loss for term in objective.terms)).backward()
    assert leaf.grad.norm() > 0  # autograd has been through the whole network, ...
    assert entries == []  # ... and entered none of them.

    objective.evaluate(leaf)
    assert entries == ["StyleLoss", "ContentLoss", "StyleLoss"]  # one call each, by the driver


def test_autograd_enters_a_functions_backward(network, content, style, monkeypatch):
    entries = []
    original = MomentsTap.backward

    def counting(ctx, *grads):
        entries.append("MomentsTap")
        return original(ctx, *grads)

    monkeypatch.setattr(MomentsTap, "backward", staticmethod(counting))
    gradient(make_objective("autograd_function", network, content, style), picture(seed=3))
    assert entries == ["MomentsTap", "MomentsTap"]


@pytest.mark.parametrize("tv_weight", [0.0, 1.0])
@pytest.mark.parametrize("mode", MODES)
def test_backward_calls_per_evaluation(mode, tv_weight, network, content, style, monkeypatch):
    objective = make_objective(mode, network, content, style, tv_weight=tv_weight)
    calls = []
    original = torch.Tensor.backward

    def counting(self, *args, **kwargs):
        calls.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "backward", counting)
    objective.evaluate(picture(seed=3).requires_grad_())
    k = len(objective.terms)
    assert len(calls) == (k + (tv_weight > 0) if mode == "fake_backward" else 1)


@pytest.mark.parametrize("mode", MODES)
def test_graph_is_not_kept_after_an_evaluation(mode, network, content, style):
    objective = make_objective(mode, network, content, style)
    objective.evaluate(picture(seed=3).requires_grad_())
    losses = [term.module.loss for term in objective.terms]
    for loss in losses:
        with pytest.raises((RuntimeError, AttributeError), match=r"second time|no attribute"):
            loss.backward()


# The network around the losses.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layer", LOSS_LAYERS)
def test_taps_survive_inplace_relu(mode, layer, network, content, style):
    """Each layer, before and after a ReLU, as a network computes it that has nothing in place."""
    image = picture(seed=3)
    expected = out_of_place(network, image, LOSS_LAYERS)
    for wanted in ([layer], [layer, "relu2_2"], LOSS_LAYERS):
        actual = network(image, wanted)
        assert all(torch.equal(actual[name], expected[name]) for name in wanted)

    settings = {"content_layers": [layer], "style_layers": [layer], "normalization": "none"}
    objective = make_objective(mode, network, content, style, **settings)
    leaf = image.clone().requires_grad_()
    f, p, s = (out_of_place(network, x, [layer])[layer] for x in (leaf, content, style))
    total = 0.5 * content_loss(f, p) + 2.0 * style_loss(f, gram_matrix(s))
    (wanted,) = torch.autograd.grad(total, leaf)
    assert relative_error(gradient(objective, image), wanted) <= 1e-10


def test_an_unguarded_inplace_relu_would_alter_a_tap(network, content):
    conv, relu = network.layers["conv1_1"], nn.ReLU(inplace=True)
    layer = conv(network.preprocess(content))
    before = layer.clone()
    relu(layer)
    assert not torch.equal(layer, before)
    ended = network.ended_at(["conv1_1", "relu1_2"]).layers
    assert not ended["relu1_1"].inplace
    assert ended["relu1_2"].inplace


@pytest.mark.parametrize("mode", MODES)
def test_parameters_keep_no_gradient(mode, network, content, style):
    complete_run(Job(run_settings(), network, get_loss_mode(mode), pair(content, style)))
    assert len(list(network.parameters())) == 8
    for parameter in network.parameters():
        assert parameter.grad is None
        assert not parameter.requires_grad


@pytest.mark.vgg
def test_gradients_agree_under_vgg19(vgg19_weights):
    from styletransfer.config import FeaturesConfig

    network = build_features(FeaturesConfig(name="vgg19", weights=vgg19_weights)).double()
    content, style, image = (picture(seed, 64, 64) for seed in range(3))
    config = layers(
        content_layers=["relu4_2"],
        style_layers=["relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1"],
    )
    found = [
        gradient(Objective(network, get_loss_mode(mode), config, pair(content, style)), image)
        for mode in MODES
    ]
    assert relative_error(found[0], found[1]) <= 1e-10
    assert relative_error(found[2], found[1]) <= 1e-10


@pytest.mark.cuda
@pytest.mark.parametrize("mode", MODES)
def test_gradients_agree_on_a_gpu(mode, network, content, style):
    expected = gradient(make_objective(mode, network, content, style), picture(seed=3))
    network.to("cuda")
    objective = make_objective(mode, network, content.cuda(), style.cuda())
    assert relative_error(gradient(objective, picture(seed=3).cuda()).cpu(), expected) <= 1e-10
