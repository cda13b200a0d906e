"""The objective: what its terms are, which settings it refuses, and that its gradient is one."""

import pytest
import torch
from helpers import MODES, gradient, layers, make_objective, picture, relative_error, tiny_network

from styletransfer.errors import UserError
from styletransfer.functions import gram_matrix
from styletransfer.losses import STYLE_LOSSES, total_variation
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.objective.limits import check_size
from styletransfer.objective.terms import layer_weights
from styletransfer.objective.whole import Objective, style_targets_of
from styletransfer.pictures.images import resize

MODE = "autograd_function"


def losses_at(objective, image):
    return objective.evaluate(image.clone().requires_grad_()).as_floats()


def test_terms_are_named_and_add_up(network, content, style):
    objective = make_objective(MODE, network, content, style, tv_weight=2.0)
    losses = losses_at(objective, picture(seed=3))
    total = losses.pop("total")
    assert list(losses) == ["style/relu1_1", "content/relu2_1", "style/relu2_1", "total_variation"]
    assert total == pytest.approx(sum(losses.values()), rel=1e-12)
    assert losses["total_variation"] == pytest.approx(
        2.0 * total_variation(picture(seed=3)).item(), rel=1e-12
    )
    live = objective.evaluate(picture(seed=3).requires_grad_())
    assert live.total.item() == pytest.approx(total, rel=1e-12)
    assert not any(value.requires_grad for value in live.terms.values())


@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
@pytest.mark.parametrize("mode", MODES)
def test_gradient_is_the_slope_of_the_value(mode, style_loss, network, content, style):
    settings = {"tv_weight": 2.0, "style_loss": style_loss}
    objective = make_objective(mode, network, content, style, **settings)
    image, direction = picture(seed=3), picture(seed=4) - 0.5
    h = 1e-6
    up, down = (losses_at(objective, image + sign * h * direction)["total"] for sign in (1, -1))
    slope = (gradient(objective, image) * direction).sum().item()
    assert (up - down) / (2 * h) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_accumulate_in_the_image(mode, network, content, style):
    objective = make_objective(mode, network, content, style)
    leaf = picture(seed=3).requires_grad_()
    objective.evaluate(leaf)
    once = leaf.grad.clone()
    objective.evaluate(leaf)
    assert relative_error(leaf.grad, 2 * once) < 1e-12


@pytest.mark.parametrize("mode", MODES)
def test_the_content_has_no_content_loss_and_the_style_no_style_loss(mode, network, content, style):
    at_content = losses_at(make_objective(mode, network, content, style), content)
    assert at_content["content/relu2_1"] == 0
    assert at_content["style/relu2_1"] > 0
    at_style = losses_at(make_objective(mode, network, style, style), style)
    assert at_style["total"] < 1e-28


def test_target_normalization_divides_by_the_targets_mean_square(network, content, style):
    plain, relative = (
        losses_at(
            make_objective(MODE, network, content, style, normalization=kind), picture(seed=3)
        )
        for kind in ("none", "target")
    )
    p = network(content, ["relu2_1"])["relu2_1"]
    a = gram_matrix(network(style, ["relu2_1"])["relu2_1"])
    assert relative["content/relu2_1"] == pytest.approx(
        plain["content/relu2_1"] / (p**2).mean().item(), rel=1e-12
    )
    assert relative["style/relu2_1"] == pytest.approx(
        plain["style/relu2_1"] / (a**2).mean().item(), rel=1e-12
    )


@pytest.mark.parametrize(
    ("size", "reference"),
    [
        ((128, 1024), (64, 512)),
        ((1024, 256), (512, 128)),
        ((1000, 80), (800, 64)),  # no thinner than 64 px
        ((40, 700), (40, 700)),
        ((512, 400), (512, 400)),
    ],
)
def test_a_large_contents_loss_is_relative_to_the_content_at_512_px(
    size, reference, network, style
):
    content, image = picture(1, *size), picture(3, *size)
    plain, relative = (
        losses_at(make_objective(MODE, network, content, style, normalization=kind), image)
        for kind in ("none", "target")
    )
    p = network(resize(content, reference), ["relu2_1"])["relu2_1"]
    assert relative["content/relu2_1"] == pytest.approx(
        plain["content/relu2_1"] / (p**2).mean().item(), rel=1e-12
    )


def test_target_normalization_ignores_the_scale_of_the_features(network, content, style):
    """A network whose last activations are ten times as large gives the same losses."""
    before = losses_at(make_objective(MODE, network, content, style), picture(seed=3))
    network.layers["conv2_1"].weight.mul_(10)
    after = losses_at(make_objective(MODE, network, content, style), picture(seed=3))
    assert after == pytest.approx(before, rel=1e-10)


@pytest.mark.parametrize(("normalization", "times"), [("target", 1.25), ("none", 1.0)])
def test_a_network_may_say_how_much_its_content_counts(
    normalization, times, network, content, style
):
    """Where losses are relative; weights that hold all constants are taken as they are."""

    def losses():
        settings = {"normalization": normalization}
        return losses_at(make_objective(MODE, network, content, style, **settings), picture(seed=3))

    before = losses()
    network.content_gains = {"relu2_1": 1.25, "relu1_1": 7.0}
    expected = before["content/relu2_1"] * times
    after = losses()
    assert after["content/relu2_1"] == pytest.approx(expected, rel=1e-12)
    assert all(after[name] == before[name] for name in before if name.startswith("style"))


@pytest.mark.parametrize("mode", MODES)
def test_a_target_of_zeros_is_not_divided_by(mode, network, content, style):
    for parameter in network.layers["conv2_1"].parameters():
        parameter.zero_()
    objective = make_objective(mode, network, content, style)
    assert losses_at(objective, picture(seed=3))["content/relu2_1"] == 0
    assert gradient(objective, picture(seed=3)).isfinite().all()


def test_content_and_style_may_have_any_two_sizes(network):
    objective = make_objective(MODE, network, picture(1, 11, 30), picture(2, 25, 7))
    assert gradient(objective, picture(3, 11, 30)).shape == (1, 3, 11, 30)


def test_weights_are_linear(network, content, style):
    def style_term(**settings):
        objective = make_objective(MODE, network, content, style, **settings)
        return losses_at(objective, picture(seed=3))["style/relu2_1"]

    assert style_term(style_weight=6.0) == pytest.approx(3 * style_term(style_weight=2.0))
    assert style_term(style_layer_weights=[1.0, 0.5]) == pytest.approx(0.5 * style_term())


def test_the_deepest_layer_counts_a_tenth_where_no_factors_are_given():
    """At full weight it lays whole objects of the style over faces."""
    deepest = {"style_layers": ["relu4_1", "relu5_1"], "style_weight": 3.0}
    _, style = layer_weights(layers(**deepest))
    assert style == pytest.approx({"relu4_1": 3.0, "relu5_1": 0.3})
    _, style = layer_weights(layers(**deepest, style_layer_weights=[2.0, 1.0]))
    assert style == {"relu4_1": 6.0, "relu5_1": 3.0}


def test_layers_without_weight_are_left_out(network, content, style):
    """So is all of the network behind the last one with a weight."""
    objective = make_objective(MODE, network, content, style, content_weight=0.0)
    assert [term.name for term in objective.terms] == ["style/relu1_1", "style/relu2_1"]
    settings = {"content_weight": 0.0, "style_layer_weights": [1.0, 0.0]}
    objective = make_objective(MODE, network, content, style, **settings)
    assert [term.name for term in objective.terms] == ["style/relu1_1"]
    names = [name for name, _ in objective.network.named_children()]
    assert names == ["preprocess", "conv1_1", "relu1_1", "style_relu1_1"]


def test_one_layer_may_serve_both(network, content, style):
    objective = make_objective(
        MODE, network, content, style, content_layers=["relu1_1"], style_layers=["relu1_1"]
    )
    assert [term.name for term in objective.terms] == ["content/relu1_1", "style/relu1_1"]


def test_channels_last_gives_the_same_gradient(network, content, style):
    expected = gradient(make_objective(MODE, network, content, style), picture(seed=3))
    network.to(memory_format=torch.channels_last)
    actual = gradient(make_objective(MODE, network, content, style), picture(seed=3))
    assert relative_error(actual, expected) < 1e-12


def test_objective_moves_with_its_network(network, content, style):
    """Targets are buffers of the network that `evaluate` runs."""
    objective = make_objective(MODE, network, content, style)
    objective.network.to("meta")
    assert {term.module.target.device.type for term in objective.terms} == {"meta"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"content_weight": -1.0}, r"objective\.content_weight=-1\.0 must be a finite number"),
        ({"style_weight": float("nan")}, r"objective\.style_weight=nan must be a finite number"),
        ({"style_weight": float("inf")}, r"objective\.style_weight=inf must be a finite number"),
        ({"tv_weight": -0.1}, r"objective\.tv_weight=-0\.1 must be a finite number"),
        ({"tv_weight": float("nan")}, r"objective\.tv_weight=nan"),
        ({"style_layer_weights": [1.0, -2.0]}, r"objective\.style_layer_weights=-2\.0"),
        ({"style_layer_weights": [1.0, float("nan")]}, r"objective\.style_layer_weights=nan"),
        ({"content_weight": 0.0, "style_weight": 0.0}, "all content and style weights are 0"),
        ({"content_layers": [], "style_layers": []}, "all content and style weights are 0"),
        ({"content_layer_weights": [1.0, 2.0]}, r"content_layers names 1 layers but .* 2 numbers"),
        ({"style_layers": ["relu1_1", "relu1_1"]}, r"style_layers names relu1_1 twice"),
        ({"style_loss": "magic"}, r"unknown objective\.style_loss 'magic'"),
        ({"normalization": "batch"}, r"normalization 'batch'; choose target or none"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        layer_weights(layers(**settings))


def test_unknown_layer_is_refused(network, content, style):
    with pytest.raises(UserError, match="unknown layer relu8_1; this network has conv1_1"):
        make_objective(MODE, network, content, style, content_layers=["relu8_1"])


@pytest.mark.parametrize("layer", ["relu1_1", "relu2_1", "relu3_1", "relu4_1"])
def test_smallest_side_is_named_and_works(layer):
    network = tiny_network(((3,), (3,), (3,), (3,)))
    needed = network.stride(layer)
    check_size(network.ended_at([layer]), (needed, 40), "x")
    assert network(picture(height=needed, width=40), [layer])[layer].shape[2] == 1
    if needed > 1:
        with pytest.raises(UserError, match=f"x comes .* at least {needed}; raise size"):
            check_size(network.ended_at([layer]), (needed - 1, 40), "x")


def test_too_small_pictures_are_refused_by_name(network, content):
    with pytest.raises(UserError, match="the style image comes down to 9 x 1 pixels"):
        make_objective(MODE, network, content, picture(2, 1, 9))
    with pytest.raises(UserError, match="the content image comes down to 1 x 9 pixels"):
        make_objective(MODE, network, picture(2, 9, 1), content)


@pytest.mark.parametrize("mode", MODES)
def test_style_targets_serve_many_content_images(mode, network, content, style):
    """With a style loss of means and covariances, and without another look at the style."""
    config, chosen = layers(style_loss="wasserstein"), get_loss_mode(mode)
    targets = style_targets_of(network, config, pair(picture(5), style))
    fresh = Objective(network, chosen, config, pair(content, style))
    again = Objective(network, chosen, config, pair(content, torch.zeros_like(style)), targets)
    image = picture(seed=3)
    assert torch.equal(gradient(again, image), gradient(fresh, image))
