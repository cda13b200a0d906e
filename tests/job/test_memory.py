"""The estimate of memory, the choice of a tile, and runs that continue when memory runs out."""

import math
from functools import cache
from unittest.mock import Mock

import pytest
import torch
from helpers import job_with, picture, relative_error, run_settings, tiny_network

from styletransfer.errors import UserError
from styletransfer.features import vgg
from styletransfer.job.memory import FIXED, SMALL_TILE, USABLE, plan_memory
from styletransfer.losses import LOSS_MODES
from styletransfer.objective.inputs import pair
from styletransfer.optimize.run import Run, objective_of
from styletransfer.settings import ObjectiveConfig, StyleTransferConfig
from styletransfer.tiling.tiled import TiledObjective

CLOSED = LOSS_MODES["autograd_function"]
GIB = 2**30


def blank(height, width):
    """Return an image (1, 3, height, width) of zeros that takes almost no memory."""
    return torch.zeros(1, 1, 1, 1).expand(1, 3, height, width)


@cache
def vgg19():
    return vgg.build(vgg.WIDTHS["vgg19"])


@pytest.mark.slow
@pytest.mark.parametrize("tile", ["off", "32"])
@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_the_estimate_is_near_the_measured_peak(optimizer, tile):
    """The test uses float64, because torch's float64 convolutions need equal memory everywhere."""
    measure = pytest.importorskip("styletransfer.lessons.measure")
    # The layers are wide enough that activations take more memory than images.
    network, side = tiny_network(((16, 16), (24, 24))), 64
    config = run_settings(optimizer, size=side, steps=6 if optimizer == "lbfgs" else 2, tile=tile)
    config.optimizer.history = 4
    job = job_with(config, network, CLOSED, pair(picture(1, side, side), picture(2, side, side)))
    peak = measure.peak_memory(lambda: Run(job).complete(), torch.device("cpu"))
    expected = plan_memory(job, job.scales[0], math.inf).bytes - FIXED
    assert 0.4 * peak <= expected <= 2.5 * peak


def chosen(free, mode="autograd_function", size=(3000, 4000), **settings):
    config = StyleTransferConfig(size=max(size), **settings)
    job = job_with(config, vgg19(), LOSS_MODES[mode], pair(blank(*size), blank(700, 900)))
    return plan_memory(job, job.scales[-1], free)


def test_tiles_shrink_with_memory():
    free = [60 * GIB, 16 * GIB, 13 * GIB, 12 * GIB]
    plans = [chosen(bytes_) for bytes_ in free]
    assert chosen(math.inf).tile is None
    sides = [plan.tile or 4000 for plan in plans]
    assert sides == sorted(sides, reverse=True)
    assert len({*sides}) > 2
    for bytes_, plan in zip(free, plans, strict=True):
        assert plan.bytes <= USABLE * bytes_
    assert chosen(10 * GIB).tile == SMALL_TILE  # more would stay than fits


def test_match_targets_count_in_tiles_too():
    """VGG-19's relu2_1 has 128 channels of float32 at a quarter of the pixels, of two pictures."""
    matched = ObjectiveConfig(match_weight=0.5, match_layers=["relu2_1"])
    for tile in ("off", "512"):
        more = chosen(math.inf, tile=tile, objective=matched).bytes
        assert more - chosen(math.inf, tile=tile).bytes == 2 * 128 / 4 * 4 * 3000 * 4000


def test_what_was_asked_for():
    assert chosen(GIB, tile="off").tile is None
    assert chosen(math.inf, tile="512").tile == 512
    assert chosen(math.inf, tile="4000").tile is None
    assert chosen(math.inf, "loss_attribute").tile is None
    with pytest.raises(UserError, match="tile=8 must be at least 16"):
        chosen(math.inf, tile="8")
    with pytest.raises(UserError, match="tiles need loss_mode=autograd_function; choose that, or"):
        chosen(math.inf, "fake_backward", tile="64")


def test_halving_the_tile_changes_nothing_else(monkeypatch, caplog, content, style):
    """Memory runs out in the second evaluation, and again while the smaller objective is made.

    The image equals, to rounding, that of a run with enough memory.
    """
    job = job_with(run_settings(steps=3, tile="16"), tiny_network(), CLOSED, pair(content, style))
    expected = Run(job).complete().image
    tiled, calls = TiledObjective.evaluate, []

    def once(self, image):
        calls.append(self.scan.tile)
        if len(calls) == 2:
            raise MemoryError
        return tiled(self, image)

    def scarce(job, pictures, tile, graph):
        if tile == 8:
            raise MemoryError
        return objective_of(job, pictures, tile)

    monkeypatch.setattr("styletransfer.optimize.run.objective_of", scarce)
    monkeypatch.setattr(TiledObjective, "evaluate", once)
    actual = Run(job).complete().image
    assert calls == [16] * 2 + [4] * 3
    assert relative_error(actual, expected) < 1e-6
    assert caplog.text.count("memory ran out; going on in tiles of 8 pixels") == 1


def test_the_smallest_tile_is_the_end(monkeypatch, caplog, content, style):
    tiles = []

    def broken(job, pictures, tile, graph):
        tiles.append(tile)
        return Mock(evaluate=Mock(side_effect=error))

    monkeypatch.setattr("styletransfer.optimize.run.objective_of", broken)
    error: Exception = MemoryError("scarce")
    for mode, expected in (("autograd_function", [None, 10, 5, 2]), ("loss_attribute", [None])):
        tiles.clear()
        job = job_with(run_settings(), tiny_network(), LOSS_MODES[mode], pair(content, style))
        assert "memory ran out" in Run(job).complete().problem
        assert tiles == expected
    assert len(caplog.records) == 1
    for error in (RuntimeError("a bug"), ValueError("another")):
        with pytest.raises(type(error), match=str(error)):
            Run(job).complete()
