"""Style networks: their layers against one-line formulas, and pictures in strips."""

import pytest
import torch
from helpers import picture, relative_error
from torch import nn

from styletransfer.networks import LAYOUTS, Architecture, StyleNetwork, in_strips
from styletransfer.networks.johnson import SMALLEST_SIDE, padded, randomize
from styletransfer.networks.layers import ConditionalInstanceNorm, NormedConv, Segment

SLIM = Architecture((3, 4, 5), 2)


def network(styles: int = 1, layout: Architecture = SLIM) -> StyleNetwork:
    """A network whose styles differ, in float64."""
    made = StyleNetwork(layout, styles).double()
    randomize(made, seed=1)
    generator = torch.Generator().manual_seed(2)
    for module in made.modules():
        if isinstance(module, ConditionalInstanceNorm):
            for parameter in (module.scale, module.shift):
                noise = torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.data.add_(noise - 0.5)
    return made.requires_grad_(False)


def one(style: int, styles: int) -> torch.Tensor:
    return nn.functional.one_hot(torch.tensor([style]), styles).double()


def test_the_norm_of_one_style_is_torchs_instance_norm() -> None:
    norm, x = ConditionalInstanceNorm(3, 2).double().requires_grad_(False), picture(0, 6, 5)
    norm.scale[1], norm.shift[1] = torch.tensor([[2.0, 3, 4], [5, 6, 7]]).double()
    theirs = nn.functional.instance_norm(x, weight=norm.scale[1], bias=norm.shift[1])
    assert relative_error(norm(x, one(1, 2)), theirs) < 1e-14
    assert relative_error(norm(x, one(0, 2)), nn.functional.instance_norm(x)) < 1e-14


def test_a_blend_is_the_average_of_scales_and_shifts() -> None:
    norm, x = ConditionalInstanceNorm(3, 2).double().requires_grad_(False), picture(0, 6, 5)
    norm.scale[1], norm.shift[1] = 3.0, 8.0
    blended = norm(x, torch.tensor([[0.75, 0.25]]).double())
    assert relative_error(blended, 1.5 * nn.functional.instance_norm(x) + 2) < 1e-14


def test_each_picture_of_a_batch_has_its_own_style() -> None:
    two, image = network(2), picture(0, 12, 16)
    batch = two(image.expand(2, -1, -1, -1), torch.eye(2).double())
    for style in range(2):
        assert relative_error(batch[style : style + 1], two(image, one(style, 2))) < 1e-12
    assert relative_error(batch[:1], batch[1:]) > 0.01


def test_borders_are_reflected_and_upsampling_repeats() -> None:
    conv, x = NormedConv(3, 2, 1, upsample=True).double().requires_grad_(False), picture(0, 4, 5)
    repeated = x.repeat_interleave(2, 2).repeat_interleave(2, 3)
    reflected = nn.functional.pad(repeated, (1, 1, 1, 1), mode="reflect")
    by_hand = nn.functional.conv2d(reflected, conv.conv.weight)
    assert relative_error(conv.convolved(x), by_hand) < 1e-14
    after = nn.functional.instance_norm(by_hand).relu()
    assert relative_error(conv(x, one(0, 1)), after) < 1e-13


def test_a_residual_block_adds_its_input_after_the_last_norm() -> None:
    convs = [NormedConv(3, 3, 1), NormedConv(3, 3, 1, relu=False)]
    block, x = Segment(convs, residual=True).double(), picture(0, 6, 5)
    assert torch.equal(block(x, one(0, 1)), x + convs[1](convs[0](x, one(0, 1)), one(0, 1)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_has_its_weights(name: str) -> None:
    """Counted by the table of the paper: nothing but kernels, scales, shifts and three biases."""
    (a, b, c), blocks = LAYOUTS[name].widths, LAYOUTS[name].blocks
    kernels = 81 * 3 * a * 2 + 9 * (a * b + b * c) * 2 + 9 * c * c * 2 * blocks
    norms = 2 * (a + b + c + 2 * blocks * c + b + a)
    made = StyleNetwork(LAYOUTS[name], 1)
    assert sum(each.numel() for each in made.parameters()) == kernels + norms + 3


@pytest.mark.parametrize("size", [(8, 8), (9, 14), (16, 23), (31, 10)])
def test_pictures_of_any_size_keep_it(size: tuple[int, int]) -> None:
    painted = network()(picture(0, *size), one(0, 1))
    assert painted.shape == (1, 3, *size)
    assert painted.amin() > 0
    assert painted.amax() < 1
    assert min(size) >= SMALLEST_SIDE


def test_the_last_row_and_column_are_repeated() -> None:
    image = picture(0, 9, 14)
    whole = padded(image)
    assert whole.shape == (1, 3, 12, 16)
    assert torch.equal(whole[:, :, :9, :14], image)
    assert torch.equal(whole[:, :, 9:, :14], image[:, :, -1:].expand(-1, -1, 3, -1))
    assert torch.equal(whole[:, :, :, 14:], whole[:, :, :, 13:14].expand(-1, -1, -1, 2))


def test_weights_follow_from_the_seed() -> None:
    first, again, other = (StyleNetwork(SLIM, 1) for _ in range(3))
    for each, seed in ((first, 3), (again, 3), (other, 4)):
        randomize(each, seed)
    image = picture().float()
    assert torch.equal(first(image, torch.ones(1, 1)), again(image, torch.ones(1, 1)))
    assert not torch.equal(first(image, torch.ones(1, 1)), other(image, torch.ones(1, 1)))


@pytest.mark.parametrize("rows", [4, 12, 30, 1000])
@pytest.mark.parametrize("size", [(8, 12), (64, 24), (101, 30)])
def test_strips_are_the_whole_picture(size: tuple[int, int], rows: int) -> None:
    two, image = network(2), picture(3, *size)
    blend = torch.tensor([[0.3, 0.7]]).double()
    assert (in_strips(two, image, blend, rows) - two(image, blend)).abs().max() < 1e-10


def test_strips_are_the_whole_picture_in_float32() -> None:
    """Of a picture whose parts differ much, so that the statistics of a part would show."""
    slim, image = network().float(), picture(3, 128, 40).float()
    image[:, :, :64] *= 0.1
    blend = torch.ones(1, 1)
    assert (in_strips(slim, image, blend, 16) - slim(image, blend)).abs().max() < 1e-5
