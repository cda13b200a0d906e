"""The benchmark of painting: its reference is the published network, and it prints every row."""

import sys
from types import ModuleType

import pytest
import torch
from helpers import benchmark_script

from styletransfer.networks import LAYOUTS


@pytest.fixture
def painting() -> ModuleType:
    return benchmark_script("painting")


@torch.no_grad()
def test_the_reference_has_the_published_layers(painting: ModuleType) -> None:
    """1 679 235 weights: three convolutions, five residual blocks, three convolutions, norms."""
    network = painting.reference()
    ends = 81 * 3 * 32 * 2 + 2 * 9 * (32 * 64 + 64 * 128) + (32 + 64 + 128 + 64 + 32 + 3)
    blocks = 5 * 2 * (9 * 128 * 128 + 128 + 2 * 128)
    norms = 2 * (32 + 64 + 128 + 64 + 32)
    assert sum(each.numel() for each in network.parameters()) == ends + blocks + norms == 1_679_235
    assert network(255 * torch.rand(1, 3, 16, 24)).shape == (1, 3, 16, 24)


def test_every_layout_has_a_row(
    painting: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["painting", "--width", "32", "--height", "24", "--rounds", "1"]
    )
    painting.main()
    printed = capsys.readouterr().out
    for name in (painting.REFERENCE, *(f"{name}, float32" for name in LAYOUTS)):
        assert f"| {name} " in printed
    assert "32 x 24 pixels, median (quartiles) of 1; cpu" in printed
