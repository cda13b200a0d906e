"""The procedural pictures: reproducible, in range and varied."""

import pytest
import torch
from torch import Tensor

from styletransfer.pictures.procedural import picture


def batch(count: int, size: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([picture(size, generator) for _ in range(count)])


@pytest.fixture(scope="module")
def pictures() -> Tensor:
    return batch(64, 64, seed=3)


def test_the_same_seed_gives_the_same_pictures(pictures: Tensor) -> None:
    assert torch.equal(batch(64, 64, seed=3), pictures)


def test_pictures_differ_between_seeds_and_from_one_to_the_next(pictures: Tensor) -> None:
    others = batch(5, 64, seed=4)
    everything = torch.cat((others, pictures)).flatten(1)
    gaps = (everything[:, None, ::7] - everything[None, :, ::7]).abs().amax(dim=2)
    assert float(gaps.fill_diagonal_(1.0).min()) > 0.01


def test_one_picture_follows_its_generator() -> None:
    first = picture(48, torch.Generator().manual_seed(1))
    assert first.shape == (3, 48, 48)
    assert torch.equal(picture(48, torch.Generator().manual_seed(1)), first)
    assert not torch.equal(picture(48, torch.Generator().manual_seed(2)), first)


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    batch(10, 32, seed=0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("size", [16, 33, 64])
def test_values_are_finite_float32_from_0_to_1(size: int) -> None:
    values = batch(60, size, seed=7)
    assert values.shape == (60, 3, size, size)
    assert values.dtype == torch.float32
    assert bool(values.isfinite().all())
    assert float(values.min()) >= 0.0
    assert float(values.max()) <= 1.0


def test_colours_vary_from_grey_to_vivid(pictures: Tensor) -> None:
    assert float(pictures.mean(dim=(2, 3)).std(dim=0).min()) > 0.08
    chroma = (pictures.amax(dim=1) - pictures.amin(dim=1)).mean(dim=(1, 2))
    assert float(chroma.quantile(0.1)) < 0.08
    assert float(chroma.quantile(0.9)) > 0.2


def test_pictures_are_not_flat(pictures: Tensor) -> None:
    contrast = pictures.std(dim=(2, 3)).mean(dim=1)
    assert float(contrast.min()) > 0.005
    assert float(contrast.median()) > 0.1


def test_spectra_range_from_smooth_to_rough(pictures: Tensor) -> None:
    grey = pictures.mean(dim=1)
    power = torch.fft.fft2(grey - grey.mean(dim=(1, 2), keepdim=True)).abs().square()
    line = torch.fft.fftfreq(grey.shape[-1])
    radius = (line[:, None].square() + line[None, :].square()).sqrt()
    low = power[:, (radius > 0.02) & (radius < 0.06)].mean(dim=1)
    high = power[:, (radius > 0.3) & (radius < 0.5)].mean(dim=1)
    slope = (low / high.clamp(min=1e-9)).log() / torch.tensor(10.0).log()
    assert float(slope.quantile(0.1)) < 2.0
    assert float(slope.quantile(0.9)) > 3.0
