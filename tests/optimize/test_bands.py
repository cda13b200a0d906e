"""Inputs that are cut into bands, shared between processes, or kept in files."""

import copy
from dataclasses import replace

import pytest
import torch
from helpers import picture, run_settings, tiny_network

from styletransfer.config import OptimizerConfig, StyleTransferConfig
from styletransfer.features import vgg
from styletransfer.job.job import Job
from styletransfer.job.layout import SMALL_TILE, MemoryLayout, choose_layout
from styletransfer.job.memory import estimate, relative_work
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.optimize import run
from styletransfer.optimize.run import complete_run
from styletransfer.system import storage

CLOSED = get_loss_mode("autograd_function")
GIB = 2**30


def chosen(gib: float) -> MemoryLayout:
    """Return what is chosen for Adam and 3000 x 4000 pixels."""
    blank = torch.zeros(1, 1, 1, 1)  # takes no memory
    pictures = pair(blank.expand(1, 3, 3000, 4000), blank.expand(1, 3, 700, 900))
    config = StyleTransferConfig(size=4000, optimizer=OptimizerConfig("adam", 0.02))
    job = Job(config, vgg.build(vgg.WIDTHS["vgg19"]), CLOSED, pictures)
    return choose_layout(job, job.scales[-1], gib * GIB)


def test_what_not_even_small_tiles_make_fit_is_cut_into_bands() -> None:
    """Only then: a band costs a third forward."""
    layouts = [chosen(gib) for gib in (60, 5.5, 4.5, 4)]
    bands = [layout.bands for layout in layouts]
    assert bands == sorted(bands)
    assert bands[0] == 1 < bands[-1]
    for layout in layouts:
        assert layout.problem is None
    assert layouts[-1].tile == SMALL_TILE


def test_bands_take_less_memory_and_more_work() -> None:
    network, size = vgg.build(vgg.WIDTHS["vgg19"]), (4096, 4096)
    config = StyleTransferConfig()
    found = [
        estimate(network, CLOSED, config, size, [size], 1024, history=1, bands=bands)
        for bands in (1, 2, 4)
    ]
    evaluations = [memory.evaluation + memory.targets for memory in found]
    assert evaluations == sorted(evaluations, reverse=True)
    work = [relative_work(network, config, size, 256, bands) for bands in (1, 2, 4)]
    # Two forwards and a backward; a third forward, and one of the content as far as relu4_2.
    assert 1.6 < work[1] / work[0] < 1.8
    assert work[1] < work[2]


def test_processes_share_memory_and_work() -> None:
    network, size = vgg.build(vgg.WIDTHS["vgg19"]), (4096, 4096)
    config = StyleTransferConfig()
    given = (network, CLOSED, config, size, [size], 1024, 1)
    alone, shared = estimate(*given), estimate(*given, processes=4)
    assert shared.targets < 0.3 * alone.targets
    assert shared.evaluation < alone.evaluation
    assert shared.pictures == alone.pictures  # the optimiser is the same everywhere
    work = [relative_work(network, config, size, 1024, processes=count) for count in (1, 4)]
    assert 0.25 < work[1] / work[0] < 0.3


def test_a_run_in_bands_makes_the_picture_of_one_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after it was resumed: the bands are those that it had."""
    content, style = picture(1, 64, 40), picture(2, 40, 40)
    config = run_settings("adam", size=64, steps=4, tile="8")
    job = Job(config, tiny_network(), CLOSED, pair(content, style))
    expected = complete_run(job).image
    real = run.choose_layout

    def in_bands(*given):
        return replace(real(*given), bands=3)

    monkeypatch.setattr(run, "choose_layout", in_bands)
    begun = run.Run(job)
    steps = iter(begun)
    next(steps), next(steps)
    state = copy.deepcopy(begun.state_dict())
    rest = begun.complete().image
    monkeypatch.setattr(run, "choose_layout", real)
    resumed = run.Run(job)
    resumed.load_state_dict(state)
    assert torch.equal(resumed.complete().image, rest)
    assert (rest - expected).abs().max() < 1e-6


def test_a_large_picture_of_adams_is_kept_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, and a smaller estimate."""
    content, style = picture(1, 40, 40), picture(2, 40, 40)
    config = run_settings("adam", size=40, steps=4)
    job = Job(config, tiny_network(), CLOSED, pair(content, style))
    expected = complete_run(job).image
    given = (job.extractor, CLOSED, config, (40, 40), [(40, 40)], None, 1)
    before = estimate(*given).pictures
    monkeypatch.setattr(storage, "SHARE", 0.0)
    assert torch.equal(complete_run(job).image, expected)
    assert estimate(*given).pictures == before * 3 / 15
