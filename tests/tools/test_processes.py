"""The benchmark of several processes: what it counts, and its model."""

from types import ModuleType

import pytest
import torch
from helpers import benchmark_script

from styletransfer.config import FeaturesConfig
from styletransfer.features import build_features
from styletransfer.system.processes import Processes


@pytest.fixture
def benchmark() -> ModuleType:
    return benchmark_script("processes")


def test_the_model_is_the_formula_it_names(benchmark: ModuleType) -> None:
    model = benchmark.Model(evaluation=10.0, optimizer=1.0, bandwidth=100.0)
    # A ring of 4 sends 1.5 times 200 bytes, in 3 seconds.
    assert model.efficiency(4, 0.3, 200.0) == pytest.approx(11 / (4 * (3 + 1 + 3)))
    assert model.efficiency(1, 1.0, 200.0) == 1.0


def test_pictures_are_counted_apart(benchmark: ModuleType) -> None:
    counted = benchmark.Counted(Processes())
    counted.add([torch.zeros(2, 2), torch.zeros(3)])
    counted.add([torch.zeros(1, 3, 4, 5)])
    counted.largest([1, 2])
    assert (counted.pictures, counted.others) == (240, 28 + 16)


def test_the_share_of_a_process_holds_its_halo(benchmark: ModuleType) -> None:
    network = build_features(FeaturesConfig(name="vgg19", weights="random"), seed=0)
    shares = [benchmark.share_of(network, 2048, 512, count) for count in (1, 2, 4)]
    assert shares[0] == 1
    assert 0.5 < shares[1] < 0.55
    assert 0.25 < shares[2] < 0.33
