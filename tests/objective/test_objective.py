"""The objective: its terms, the settings that raise an error, and the anchor of a film."""

from dataclasses import replace

import pytest
from helpers import (
    MODES,
    ROOT,
    gradient,
    layers,
    make_objective,
    picture,
    relative_error,
    tiny_network,
)

from styletransfer.errors import UserError
from styletransfer.losses import LOSS_MODES, temporal_loss
from styletransfer.losses.moments import gram_matrix
from styletransfer.objective import Criterion, check_size
from styletransfer.objective.inputs import Anchor, pair
from styletransfer.objective.whole import Objective
from styletransfer.pictures import images
from styletransfer.pictures.images import resize

MODE = "autograd_function"


def losses_at(objective, image):
    return objective.evaluate(image.clone().requires_grad_()).as_floats()


@pytest.mark.parametrize(
    ("size", "reference"),
    [
        ((16, 20), (16, 20)),
        ((600, 70), (549, 64)),  # the shorter side stays at least 64 px; never enlarged
        ((520, 40), (520, 40)),
        ((80, 640), (64, 512)),
    ],
)
def test_losses_are_relative_to_their_targets_mean_square(size, reference, network, style):
    """The mean square of a large content is that at 512 px; a network may have content gains."""
    content, image = picture(1, *size), picture(3, *size)

    def found(kind):
        losses = losses_at(make_objective(MODE, network, content, style, normalization=kind), image)
        return losses["content/relu2_1"], losses["style/relu2_1"]

    plain, relative = found("none"), found("target")
    small = content if reference == size else resize(content, reference)
    p = network(small, ["relu2_1"])["relu2_1"]
    assert relative[0] == pytest.approx(plain[0] / (p**2).mean().item(), rel=1e-12)
    a = gram_matrix(network(style, ["relu2_1"])["relu2_1"])
    assert relative[1] == pytest.approx(plain[1] / (a**2).mean().item(), rel=1e-12)
    network.content_gains = {"relu2_1": 1.25, "relu1_1": 7.0}
    assert found("none") == plain  # "none" ignores the content gains
    assert found("target") == (pytest.approx(1.25 * relative[0]), relative[1])


@pytest.mark.parametrize("mode", MODES)
def test_a_target_of_zeros_is_not_divided_by(mode, network, content, style):
    for parameter in network.layers["conv2_1"].parameters():
        parameter.zero_()
    objective = make_objective(mode, network, content, style)
    assert losses_at(objective, picture(seed=3))["content/relu2_1"] == 0
    assert gradient(objective, picture(seed=3)).isfinite().all()


def test_layers_without_weight_are_left_out(network, content, style):
    """The network ends after the last layer with a weight."""
    settings = {"content_weight": 0.0, "style_layer_weights": [1.0, 0.0]}
    objective = make_objective(MODE, network, content, style, **settings)
    assert [term.name for term in objective.terms] == ["style/relu1_1"]
    names = [name for name, _ in objective.network.named_children()]
    assert names == ["preprocess", "conv1_1", "relu1_1", "style_relu1_1"]
    settings = {"content_layers": ["relu1_1"], "style_layers": ["relu1_1"]}  # one layer for both
    objective = make_objective(MODE, network, content, style, **settings)
    assert [term.name for term in objective.terms] == ["content/relu1_1", "style/relu1_1"]


def test_a_criterion_holds_linear_weights():
    made = Criterion.of(layers(style_layer_weights=[1.0, 0.5], tv_weight=3.0, style_loss="moments"))
    assert (made.contents, made.styles) == ({"relu2_1": 0.5}, {"relu1_1": 2.0, "relu2_1": 1.0})
    assert (made.tv_weight, made.measure.name, made.is_relative) == (3.0, "moments", True)
    assert made.layers == ["relu2_1", "relu1_1", "relu2_1"]
    # relu5_1, which paints whole objects of the style over faces, counts a tenth.
    deepest = {"style_layers": ["relu4_1", "relu5_1"], "style_weight": 3.0}
    made = Criterion.of(layers(**deepest))
    assert made.styles == pytest.approx({"relu4_1": 3.0, "relu5_1": 0.3})
    made = Criterion.of(layers(**deepest, style_layer_weights=[2.0, 1.0]))
    assert made.styles == {"relu4_1": 6.0, "relu5_1": 3.0}


def test_impossible_settings_are_refused():
    for settings, message in (
        ({"content_layers": [], "style_layers": []}, "all content and style weights are 0"),
        ({"content_layer_weights": [1.0, 2.0]}, "content_layers names 1 layers but .* 2 numbers"),
        ({"style_layers": ["relu1_1", "relu1_1"]}, "style_layers names relu1_1 twice"),
    ):
        with pytest.raises(UserError, match=message):
            Criterion.of(layers(**settings))


def test_the_smallest_side_is_named_and_works():
    network = tiny_network(((3,), (3,), (3,), (3,)))
    for layer, needed in (("relu1_1", 1), ("relu2_1", 2), ("relu4_1", 8)):
        check_size(network.ended_at([layer]), (needed, 40), "x")
        assert network(picture(height=needed, width=40), [layer])[layer].shape[2] == 1
    with pytest.raises(UserError, match=r"x comes .* at least 8; raise size"):
        check_size(network, (7, 40), "x")


@pytest.mark.parametrize("mode", MODES)
def test_a_seamless_picture_may_be_rolled(mode, style):
    """The shift is a multiple of the deepest layer's stride."""
    network = tiny_network(((4, 4), (6, 6), (5, 5)))
    settings = {"content_weight": 0, "style_layers": ["relu1_1", "relu2_1", "relu3_1"]}
    objective = make_objective(mode, network, picture(1), style, seamless=True, **settings)
    image = picture(2, 16, 24)
    rolled = image.roll((4, -8), (2, 3))
    there, here = gradient(objective, rolled), gradient(objective, image)
    assert relative_error(there, here.roll((4, -8), (2, 3))) < 1e-12
    assert losses_at(objective, rolled) == pytest.approx(losses_at(objective, image), rel=1e-12)
    plain = make_objective(mode, network, picture(1), style, **settings)
    assert relative_error(gradient(plain, rolled), here.roll((4, -8), (2, 3))) > 1e-3


@pytest.mark.parametrize("mode", MODES)
def test_an_anchor_adds_its_loss_and_gradient_in_every_mode(mode, network, content, style):
    """The anchor adds the gradient 2 w c (x - t) / D to that of the other losses."""
    anchor, image = Anchor(picture(5), weights=picture(6)[:, :1], weight=30.0), picture(3)

    def made(anchor):
        criterion = Criterion.of(layers(tv_weight=2.0))
        pictures = replace(pair(content, style), anchor=anchor)
        return Objective(network, LOSS_MODES[mode], criterion, pictures)

    free, held = made(replace(anchor, weight=0.0)), made(anchor)
    slope = 2 * 30.0 * anchor.weights * (image - anchor.target) / image.numel()
    assert relative_error(gradient(held, image) - gradient(free, image), slope) < 1e-10
    losses = losses_at(held, image)
    assert list(losses)[-2:] == ["total_variation", "temporal"]
    expected = 30.0 * temporal_loss(image, anchor.target, anchor.weights).item()
    assert losses["temporal"] == pytest.approx(expected)
    assert "temporal" not in losses_at(free, image)


def test_any_differentiable_picture_can_be_painted(here, network):
    """Run the example of the page, and measure the gradient that it hands on by differences."""
    images.write("painting.jpg", picture(2, 64, 64))
    names = {}
    page = (ROOT / "docs" / "api" / "objective.md").read_text(encoding="utf-8")
    exec(page.split("```python\n")[1].split("```")[0], names)
    assert names["totals"][-1] < 0.7 * names["totals"][0]
    objective = make_objective(MODE, network, picture(3), picture(2))
    texture, way = picture(1).requires_grad_(), picture(5) - 0.5
    seen = names["view"](texture, 0.3)
    seen.backward(gradient(objective, seen.detach()))

    def total(step):
        moved = names["view"](texture.detach() + step * way, 0.3)
        return losses_at(objective, moved)["total"]

    slope = (total(1e-6) - total(-1e-6)) / 2e-6
    assert float((texture.grad * way).sum()) == pytest.approx(slope, rel=1e-5)
