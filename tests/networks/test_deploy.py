"""Networks rewritten to paint fast: the same pictures as the ones that were trained."""

import copy

import pytest
import torch
from helpers import picture, relative_error
from torch import nn

from styletransfer.networks import LAYOUTS, Architecture, StyleNetwork, deployed, in_strips
from styletransfer.networks.deploy import interleaved, measured
from styletransfer.networks.johnson import randomize
from styletransfer.networks.layers import ConditionalInstanceNorm

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
    return made


@pytest.mark.parametrize("layout", [SLIM, Architecture((8, 3, 17), 0)])
@pytest.mark.parametrize("size", [(8, 8), (9, 14), (16, 23), (31, 10), (64, 96)])
@torch.no_grad()
def test_it_paints_what_the_network_paints(size: tuple[int, int], layout: Architecture) -> None:
    trained, image = network(layout), picture(0, *size)
    fast = deployed(trained, torch.float64)
    assert (fast(image, BLEND) - trained(image, BLEND)).abs().max() < 1e-11


@pytest.mark.parametrize("name", LAYOUTS)
@torch.no_grad()
def test_it_is_as_exact_in_float32(name: str) -> None:
    trained, image = network(LAYOUTS[name], 1), picture(0, 48, 40)
    exact = trained(image, torch.ones(1, 1).double())
    fast = deployed(trained.float())(image.float(), torch.ones(1, 1))
    assert fast.dtype == torch.float32
    assert (fast - exact).abs().max() < 1e-5


@torch.no_grad()
def test_it_leaves_the_network_as_it_is() -> None:
    trained, image = network(), picture(0, 12, 16)
    before, painted = copy.deepcopy(trained.state_dict()), trained(image, BLEND)
    deployed(trained, torch.bfloat16)
    assert all(torch.equal(before[name], value) for name, value in trained.state_dict().items())
    assert torch.equal(trained(image, BLEND), painted)
    assert all(parameter.requires_grad for parameter in trained.parameters())


@torch.no_grad()
def test_each_picture_of_a_batch_has_its_own_style_and_statistics() -> None:
    trained = network()
    batch = torch.cat([picture(0, 12, 16), 0.1 * picture(1, 12, 16)])
    styles = torch.eye(2).double()
    painted = deployed(trained, torch.float64)(batch, styles)
    assert (painted - trained(batch, styles)).abs().max() < 1e-11


@pytest.mark.parametrize("rows", [4, 20, 1000])
@torch.no_grad()
def test_strips_are_the_whole_picture(rows: int) -> None:
    trained, image = network(), picture(3, 70, 24)
    fast = deployed(trained, torch.float64)
    assert (in_strips(fast, image, BLEND, rows) - trained(image, BLEND)).abs().max() < 1e-10


@torch.no_grad()
def test_bfloat16_is_close_whole_and_in_strips() -> None:
    """No error is above that of a convolution's rounded factors (8 bits) and what follows."""
    trained, image = network(LAYOUTS["tiny"]).float(), picture(0, 64, 48).float()
    blend = BLEND.float()
    exact, fast = trained(image, blend), deployed(trained, torch.bfloat16)
    for painted in (fast(image, blend), in_strips(fast, image, blend, 16)):
        assert painted.dtype == torch.float32
        assert 0 < (painted - exact).abs().mean() < 2 / 255
        assert (painted - exact).abs().max() < 0.1


@pytest.mark.parametrize("channels", [3, 8, 32, 40])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_statistics_are_those_of_the_features(channels: int, dtype: torch.dtype) -> None:
    """Of features far from zero, where bfloat16 and a difference of squares would fail."""
    generator = torch.Generator().manual_seed(0)
    features = 30 + torch.rand(2, channels, 9, 20, generator=generator)
    x = features.to(dtype).contiguous(memory_format=torch.channels_last)
    found = measured(x)
    assert found.mean.shape == found.variance.shape == (2, channels, 1, 1)
    variance, mean = torch.var_mean(x.double(), (2, 3), correction=0, keepdim=True)
    assert relative_error(found.mean.double(), mean) < 1e-6
    assert relative_error(found.variance.double(), variance) < 1e-5


@torch.no_grad()
def test_norms_in_bfloat16_round_only_at_their_end() -> None:
    trained = network(LAYOUTS["tiny"], 1).float()
    theirs, ours = (each.segments[0].convs[0].norm for each in (trained, deployed(trained)))  # type: ignore[union-attr]
    assert isinstance(theirs, ConditionalInstanceNorm)
    x, one = (
        torch.rand(1, 8, 12, 16).contiguous(memory_format=torch.channels_last),
        torch.ones(1, 1),
    )
    exact = theirs(x.bfloat16().float(), one)
    rounded = ours(x.bfloat16(), one)
    assert rounded.dtype == torch.bfloat16
    assert relative_error(rounded.float(), exact) < 2**-7


def test_positions_are_interleaved_as_pixel_shuffle_does() -> None:
    x = picture(0, 5, 7).repeat(1, 8, 1, 1) * torch.arange(24.0)[:, None, None]
    by_torch = nn.functional.pixel_shuffle(x, 2)
    together = x.unflatten(1, (6, 4)).transpose(1, 2).flatten(1, 2)
    assert torch.equal(interleaved(together), by_torch)
