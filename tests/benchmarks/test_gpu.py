"""benchmarks/gpu.py on tiny pictures, and its captured rows on a pretended GPU."""

from functools import partial

import pytest
import torch
from helpers import needs
from recorded import recorded

from benchmarks import gpu as bench
from styletransfer.optimize import run


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_vgg", "here")
def test_each_row_is_measured(monkeypatch):
    """The row of whole processes is left to `scripts/train.py`'s own tests."""
    needs("video", "av", "cv2")
    monkeypatch.setattr(bench, "SIZES", (512,))
    monkeypatch.setattr(bench, "stylize", partial(bench.stylize, steps=2))
    cpu = torch.device("cpu")
    names = []
    for work, _, make, pictures in bench.rows(cpu):
        if "scripts/" not in work:
            cells = bench.measured(make, 1, cpu, pictures).split(" | ")
            assert all(float(cell.split()[0]) > 0 for cell in cells), cells
            names.append(work)
    assert len(names) == 7
    assert names[0] == "default picture, size=32 captured=false"


@pytest.mark.usefixtures("tiny_vgg", "gpu")
def test_evaluation_and_convolutions_are_captured(monkeypatch):
    captured = []

    def counted(device, work):
        captured.append(device)
        return recorded(device, work)

    monkeypatch.setattr(bench, "captured_on_cuda", counted)
    monkeypatch.setattr(run, "captured_on_cuda", recorded)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: None)
    monkeypatch.setattr(bench, "SIZES", (32,))
    cuda = torch.device("cuda")
    found = {row[0]: row for row in bench.rows(cuda)}
    _, _, make, _ = found["default evaluation, size=32 captured=true"]
    assert "left out" not in bench.measured(make, 1, cuda, 1)
    assert len(captured) == 1


def test_what_cannot_be_measured_says_why():
    def make():
        raise RuntimeError("memory ran out\nmore of it")

    assert bench.measured(make, 1, torch.device("cpu"), 1) == "left out: memory ran out | | |"
