"""Scripts of benchmarks/: the published reference, what is exchanged, and the model of it."""

import importlib.util

import pytest
import torch
from helpers import ROOT

from benchmarks import painting, processes


def test_every_script_finds_what_it_needs():
    for path in (ROOT / "benchmarks").glob("[a-z]*.py"):
        if path.stem != "studio" or importlib.util.find_spec("websockets"):
            importlib.import_module(f"benchmarks.{path.stem}")


@torch.no_grad()
def test_the_reference_has_the_published_layers():
    """1 679 235 weights: three convolutions, five residual blocks, three convolutions, norms."""
    network = painting.reference()
    assert sum(weight.numel() for weight in network.parameters()) == 1_679_235
    assert network(255 * torch.rand(1, 3, 16, 24)).shape == (1, 3, 16, 24)


def test_the_model_of_processes_is_the_formula_it_names():
    model = processes.Model(evaluation=10.0, optimizer=1.0, bandwidth=100.0)
    # A ring of 4 sends 1.5 times 200 bytes, in 3 seconds.
    assert model.efficiency(4, 0.3, 200.0) == pytest.approx(11 / (4 * (3 + 1 + 3)))
    assert model.efficiency(1, 1.0, 200.0) == 1.0
