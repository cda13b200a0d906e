"""Bands of several processes against the whole picture, in float64. Threads stand for processes."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from helpers import layers, picture, relative_error, tiny_network
from torch import Tensor

from styletransfer.config import ObjectiveConfig
from styletransfer.features import FeatureExtractor
from styletransfer.losses import STYLE_LOSSES
from styletransfer.modes import get_loss_mode
from styletransfer.objective.bands import band, shares
from styletransfer.objective.inputs import Inputs, Region, StylePart, pair
from styletransfer.objective.stages import stages
from styletransfer.objective.tiled import TiledObjective
from styletransfer.objective.whole import Objective
from styletransfer.system.processes import Processes

MODE = get_loss_mode("autograd_function")
# The layout of VGG-19 with few channels: stride 16 at relu5_1.
VGG19 = ((3, 4), (4, 5), (5, 5, 4, 5), (6, 5, 5, 5), (6,))


class Thread(Processes):
    """One of several threads that exchange what processes would."""

    def __init__(self, rank: int, count: int, board: dict[int, object], gate: threading.Barrier):
        super().__init__(rank, count)
        self.board, self.gate = board, gate

    def add(self, tensors: Sequence[Tensor]) -> None:
        everyones = self._shown([tensor.detach().clone() for tensor in tensors])
        for tensor, parts in zip(tensors, zip(*everyones, strict=True), strict=True):
            tensor.detach().copy_(sum(parts))

    def largest(self, number: int) -> int:
        return max(self._shown(number))

    def _shown(self, mine: object) -> list:
        self.board[self.rank] = mine
        self.gate.wait()
        found = [self.board[rank] for rank in range(self.count)]
        self.gate.wait()
        return found


def in_threads(count: int, work: Callable[[Processes], object]) -> list:
    """Return what `work` returns in each of `count` threads; one that fails ends all."""
    board: dict[int, object] = {}
    gate = threading.Barrier(count, timeout=300)
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, [Thread(rank, count, board, gate) for rank in range(count)]))


def check(
    network: FeatureExtractor,
    config: ObjectiveConfig,
    pictures: Inputs,
    count: int,
    tile: int,
    bands: int = 1,
) -> None:
    """Losses and gradients agree in all, at a picture that is neither content nor style."""
    image = picture(3, *pictures.content.shape[2:])

    def evaluated(made: Objective | TiledObjective) -> tuple[dict[str, float], Tensor]:
        leaf = image.clone().requires_grad_()
        losses = made.evaluate(leaf).as_floats()
        assert leaf.grad is not None
        return losses, leaf.grad

    def shared(each: Processes) -> tuple[dict[str, float], Tensor]:
        given = (network, MODE, config, pictures, tile)
        return evaluated(TiledObjective(*given, processes=each, bands=bands))

    losses, gradient = evaluated(Objective(network, MODE, config, pictures))
    found = in_threads(count, shared)
    for ours, slope in found:
        assert list(ours) == list(losses)
        assert ours == pytest.approx(losses, rel=1e-10, abs=0)
        assert relative_error(slope, gradient) < 1e-10
        assert torch.equal(slope, found[0][1])  # to the bits, or they would drift apart


@pytest.mark.parametrize(
    ("count", "tile", "bands"), [(2, 32, 1), (3, 16, 1), (3, 400, 1), (1, 32, 3), (2, 16, 2)]
)
@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
def test_bands_of_unequal_height_give_the_gradient_of_the_whole(
    style_loss: str, count: int, tile: int, bands: int
) -> None:
    """117 rows are 7 positions of the deepest layer and a rest; the style has 3 and a rest."""
    config = ObjectiveConfig(tv_weight=0.1, style_loss=style_loss)
    pictures = pair(picture(1, 117, 40), picture(2, 50, 71))
    check(tiny_network(VGG19), config, pictures, count, tile, bands)


def test_more_bands_than_there_are_positions() -> None:
    """Those without any are left out: of three processes with two bands each, one idles."""
    pictures = pair(picture(1, 45, 40), picture(2, 20, 30))
    check(tiny_network(VGG19), ObjectiveConfig(), pictures, count=3, tile=16, bands=2)


def test_pictures_that_are_divided_where_the_content_layer_is_not() -> None:
    """Bands begin at multiples of the deepest layer's stride, also for shallower ones."""
    config = ObjectiveConfig(content_layers=["relu2_1"], normalization="none")
    pictures = pair(picture(1, 83, 40), picture(2, 50, 71))
    check(tiny_network(VGG19), config, pictures, count=2, tile=16, bands=2)


@pytest.mark.parametrize("style_loss", ["gram", "wasserstein"])
def test_regions_of_several_styles_of_which_a_process_may_see_none(style_loss: str) -> None:
    above = torch.zeros(1, 1, 24, 20, dtype=torch.float64)
    above[:, :, :6] = 1
    pictures = Inputs(
        picture(1, 24, 20),
        (picture(2, 18, 14), picture(4, 15, 21)),
        (
            Region("sky", above, (StylePart(0),)),
            Region("", 1 - above, (StylePart(0), StylePart(1, 3.0))),
        ),
    )
    check(tiny_network(), layers(style_loss=style_loss), pictures, count=3, tile=8)


def test_memory_that_runs_out_in_one_process_runs_out_in_all() -> None:
    def work(each: Processes) -> str:
        try:
            with each.sharing_shortage():
                if each.rank == 1:
                    raise MemoryError("here")
        except MemoryError as error:
            return str(error)
        return "none"

    assert in_threads(2, work) == ["memory ran out in another process", "here"]


def test_a_band_reads_little_more_than_the_deepest_layer_sees() -> None:
    network = tiny_network(VGG19)
    found = stages(network)
    middle = band(found, (640, 64), 64, owned=(160, 320))
    # relu5_1 sees 16 + 4 x 8 + 4 x 4 + 2 x 2 + 2 = 70 pixels to each side.
    assert middle.window == slice(90, 390)
    # The convolution after pool4 sees 1 position, and four before it see 4 to each side.
    assert [part.window for part in middle.parts[1:]] == [
        slice(24, 96),
        slice(14, 46),
        slice(9, 21),
    ]


def test_bands_are_all_of_the_picture_and_as_even_as_can_be() -> None:
    found = [shares(645, 16, Processes(rank, 3), each=2) for rank in range(3)]
    starts = [owned[0] for owned in (*found[0], *found[1], *found[2])]
    assert starts == [0, 96, 208, 320, 416, 528]
    assert found[2][-1] == (528, 645)
