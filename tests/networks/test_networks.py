"""Style networks: layers against one-line formulas, rewritten to paint fast, and in strips."""

import math

import pytest
import torch
from helpers import picture, relative_error
from torch import nn

from styletransfer.features.vgg import randomize
from styletransfer.networks import LAYOUTS, Architecture, StyleNetwork, deployed, in_strips
from styletransfer.networks.deploy import measured
from styletransfer.networks.johnson import ConditionalInstanceNorm, NormedConv, Segment
from styletransfer.networks.training import schedule

SLIM = Architecture((3, 4, 5), 2)
BLEND = torch.tensor([[0.3, 0.7]]).double()


def network(layout: Architecture = SLIM, styles: int = 2) -> StyleNetwork:
    """A network whose channels and styles differ, in float64."""
    made = StyleNetwork(layout, styles).double()
    randomize(made, seed=1)
    generator = torch.Generator().manual_seed(2)
    for name, parameter in made.named_parameters():
        if "norm" in name or "bias" in name:
            parameter.data.add_(torch.rand(parameter.shape, generator=generator).double() - 0.5)
    return made.requires_grad_(False)


def test_the_norm_is_torchs_instance_norm_and_blends_scales_and_shifts() -> None:
    norm, x = ConditionalInstanceNorm(3, 2).double().requires_grad_(False), picture(0, 6, 5)
    plain = nn.functional.instance_norm(x)
    norm.scale[1], norm.shift[1] = torch.tensor([[2.0, 3, 4], [5, 6, 7]]).double()
    theirs = nn.functional.instance_norm(x, weight=norm.scale[1], bias=norm.shift[1])
    first, second = torch.eye(2).double().split(1)
    assert relative_error(norm(x, second), theirs) < 1e-14
    assert relative_error(norm(x, first), plain) < 1e-14
    assert relative_error(norm(x, 0.75 * first + 0.25 * second), 0.75 * plain + 0.25 * theirs) < (
        1e-14
    )


def test_borders_are_reflected_and_upsampling_repeats() -> None:
    conv, x = NormedConv(3, 2, 1, upsample=True).double().requires_grad_(False), picture(0, 4, 5)
    repeated = x.repeat_interleave(2, 2).repeat_interleave(2, 3)
    reflected = nn.functional.pad(repeated, (1, 1, 1, 1), mode="reflect")
    by_hand = nn.functional.conv2d(reflected, conv.conv.weight)
    assert relative_error(conv.convolved(x), by_hand) < 1e-14
    after = nn.functional.instance_norm(by_hand).relu()
    assert relative_error(conv(x, torch.ones(1, 1).double()), after) < 1e-13


def test_a_residual_block_adds_its_input_after_the_last_norm() -> None:
    convs = [NormedConv(3, 3, 1), NormedConv(3, 3, 1, relu=False)]
    block, x = Segment(convs, residual=True).double(), picture(0, 6, 5)
    one = torch.ones(1, 1).double()
    assert torch.equal(block(x, one), x + convs[1](convs[0](x, one), one))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_has_its_weights(name: str) -> None:
    """Counted by the table of the paper: nothing but kernels, scales, shifts and three biases."""
    (a, b, c), blocks = LAYOUTS[name].widths, LAYOUTS[name].blocks
    kernels = 81 * 3 * a * 2 + 9 * (a * b + b * c) * 2 + 9 * c * c * 2 * blocks
    norms = 2 * (a + b + c + 2 * blocks * c + b + a)
    made = StyleNetwork(LAYOUTS[name], 1)
    assert sum(weight.numel() for weight in made.parameters()) == kernels + norms + 3


@pytest.mark.parametrize("layout", [SLIM, Architecture((8, 3, 17), 0)])
def test_rewritten_and_in_strips_it_paints_the_same_at_any_size(layout: Architecture) -> None:
    trained = network(layout)
    fast = deployed(trained, torch.float64)
    for size in ((8, 8), (9, 14), (31, 10), (70, 24)):
        image = picture(0, *size)
        painted = trained(image, BLEND)
        assert painted.shape == (1, 3, *size)
        assert 0 < painted.amin() < painted.amax() < 1
        assert (fast(image, BLEND) - painted).abs().max() < 1e-11
        edge = torch.nn.functional.pad(image, (0, -size[1] % 4, 0, -size[0] % 4), "replicate")
        repeated = trained(edge, BLEND)[:, :, : size[0], : size[1]]
        assert torch.equal(painted, repeated)
        for rows in (4, 20, 1000):
            assert (in_strips(fast, image, BLEND, rows) - painted).abs().max() < 1e-10
        assert (in_strips(trained, image, BLEND, 12) - painted).abs().max() < 1e-10


def test_each_picture_of_a_batch_has_its_own_style_and_statistics() -> None:
    trained = network()
    batch = torch.cat([picture(0, 12, 16), 0.1 * picture(1, 12, 16)])
    styles = torch.eye(2).double()
    painted = trained(batch, styles)
    for style in range(2):
        alone = trained(batch[style : style + 1], styles[style : style + 1])
        assert relative_error(painted[style : style + 1], alone) < 1e-12
    assert relative_error(trained(batch, styles.flip(0)), painted) > 0.01
    assert (deployed(trained, torch.float64)(batch, styles) - painted).abs().max() < 1e-11


@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float32, 1e-4), (torch.bfloat16, 0.2)], ids=["float32", "bfloat16"]
)
def test_in_lower_precision_it_is_close_whole_and_in_strips(
    dtype: torch.dtype, error: float
) -> None:
    """Of a picture whose parts differ much, so that the statistics of a strip would show."""
    trained, image = network(LAYOUTS["tiny"]), picture(3, 64, 40)
    image[:, :, :32] *= 0.1
    exact = trained(image, BLEND)
    fast = deployed(trained.float(), dtype)
    for painted in (
        fast(image.float(), BLEND.float()),
        in_strips(fast, image.float(), BLEND.float(), 16),
    ):
        assert painted.dtype == torch.float32
        assert 0 < (painted - exact).abs().max() < error
        assert (painted - exact).abs().mean() < error / 12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_statistics_are_those_of_the_features(dtype: torch.dtype) -> None:
    """Of features far from zero, where bfloat16 and a difference of squares would fail."""
    generator = torch.Generator().manual_seed(0)
    for channels in (3, 8, 40):
        features = 30 + torch.rand(2, channels, 9, 20, generator=generator)
        x = features.to(dtype).contiguous(memory_format=torch.channels_last)
        statistics = measured(x)
        variance, mean = torch.var_mean(x.double(), (2, 3), correction=0, keepdim=True)
        assert statistics.mean.shape == statistics.variance.shape == mean.shape
        assert relative_error(statistics.mean.double(), mean) < 1e-5
        assert relative_error(statistics.variance.double(), variance) < 1e-3


@pytest.mark.parametrize("steps", [1, 9, 600])
def test_the_learning_rate_rises_and_falls_to_zero(steps: int) -> None:
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.3)
    course = schedule(optimizer, steps)
    warmup = min(50, steps // 10)
    for step in range(steps):
        rise = min(1, (step + 1) / (warmup + 1))
        fall = 0.5 + 0.5 * math.cos(math.pi * step / steps)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.3 * rise * fall, rel=1e-12)
        optimizer.step()
        course.step()
    assert optimizer.param_groups[0]["lr"] == 0
