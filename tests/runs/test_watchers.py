"""What watches a run: metrics, snapshots, the progress bar; and what happens when it cannot."""

import errno
import json
import logging
import sys
from pathlib import Path

import pytest
import torch
from helpers import picture

from styletransfer.errors import UserError
from styletransfer.objective.terms import Losses
from styletransfer.optimize.results import Iterate
from styletransfer.pictures import images
from styletransfer.runs.watchers import (
    METRICS_BATCH,
    Metrics,
    ProgressBar,
    StepPictures,
    tolerated,
)


def iterate(step=1, steps=10, loss=0.25, **settings):
    losses = Losses({"content/relu1_1": torch.tensor(loss), "style/relu1_1": torch.tensor(0.5)})
    return Iterate(step, steps, 1, 2, losses, picture(height=4, width=6), **settings)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_metrics_schema(tmp_path):
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        for step in (1, 2):
            metrics(iterate(step))
    assert lines_of(tmp_path / "metrics.jsonl") == [
        {
            "step": step,
            "scale": 1,
            "width": 6,
            "height": 4,
            "total": 0.75,
            "content/relu1_1": 0.25,
            "style/relu1_1": 0.5,
        }
        for step in (1, 2)
    ]


@pytest.mark.parametrize("steps", [0, 1, METRICS_BATCH, METRICS_BATCH + 1, 3 * METRICS_BATCH - 1])
def test_metrics_miss_no_step(tmp_path, steps):
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        for step in range(1, steps + 1):
            metrics(iterate(step))
    assert [line["step"] for line in lines_of(tmp_path / "metrics.jsonl")] == [*range(1, steps + 1)]


def test_metrics_keep_what_they_hold_when_a_run_breaks(tmp_path):
    def interrupted():
        with Metrics(tmp_path / "metrics.jsonl") as metrics:
            metrics(iterate())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(lines_of(tmp_path / "metrics.jsonl")) == 1


def test_metrics_are_json_even_for_nan(tmp_path):
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        metrics(iterate(loss=float("nan")))
    text = (tmp_path / "metrics.jsonl").read_text()
    assert "NaN" not in text
    assert json.loads(text)["total"] is None


def test_metrics_hold_no_pictures(tmp_path):
    """Twenty pictures of 4096 pixels would be 3 GB."""
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        metrics(iterate())
        assert not any(isinstance(part, Iterate) for held in metrics.held for part in held)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("steps", [1, METRICS_BATCH, 3 * METRICS_BATCH])
def test_metrics_on_a_full_disk_say_so_once(caplog, steps):
    with Metrics(Path("/dev/full")) as metrics:
        for step in range(1, steps + 1):
            metrics(iterate(step))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "No space left on device; going on without" in caplog.text


def test_a_disk_that_fills_leaves_whole_lines(tmp_path, caplog):
    resource = pytest.importorskip("resource")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, old[1]))
    try:
        with Metrics(tmp_path / "metrics.jsonl") as metrics:
            for step in range(1, 3 * METRICS_BATCH):
                metrics(iterate(step))
                metrics.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines(keepends=True)
    assert [json.loads(line)["step"] for line in lines] == [*range(1, len(lines) + 1)]
    assert lines
    assert lines[-1].endswith("\n")
    assert caplog.text.count("File too large; going on without") == 1


def test_metrics_without_a_folder_say_so_once(tmp_path, caplog):
    with Metrics(tmp_path / "nowhere" / "metrics.jsonl") as metrics:
        for step in range(1, 2 * METRICS_BATCH):
            metrics(iterate(step))
    assert caplog.text.count("No such file or directory; going on without") == 1


@pytest.mark.parametrize("done", [0, 3, 5, 9])
def test_metrics_go_on_after_the_steps_that_were_made(tmp_path, done):
    """What was written after them is written anew, and so is a line that was torn."""
    path = tmp_path / "metrics.jsonl"
    with Metrics(path) as metrics:
        for step in range(1, 6):
            metrics(iterate(step))
    with path.open("a") as file:
        file.write('{"step": 6, "sca')
    with Metrics(path, done) as metrics:
        metrics(iterate(done + 1))
    assert [line["step"] for line in lines_of(path)] == [*range(1, min(done, 5) + 1), done + 1]


def test_metrics_that_are_flushed_can_be_read(tmp_path):
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        metrics(iterate(1))
        metrics.flush()
        assert len(lines_of(tmp_path / "metrics.jsonl")) == 1


def test_snapshots(tmp_path):
    snapshots = StepPictures(tmp_path / "snapshots", every=3)
    for step in range(1, 8):
        snapshots(iterate(step))
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == [
        "step_00003.png",
        "step_00006.png",
    ]
    saved = images.read(tmp_path / "snapshots" / "step_00003.png").rgb
    assert (saved - picture(height=4, width=6)).abs().max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize("error", [UserError("cannot write x"), OSError(errno.ENOSPC, "full")])
def test_a_callback_that_cannot_write_is_left_out(error, caplog):
    calls = []

    def failing(iterate):
        calls.append(iterate)
        raise error

    callback = tolerated(failing)
    for step in range(1, 5):
        callback(iterate(step))
    assert len(calls) == 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_other_errors_are_not_swallowed(error):
    def failing(iterate):
        raise error

    with pytest.raises(error):
        tolerated(failing)(iterate())


def test_progress_bar_shows_loss_scale_and_size(capsys):
    with ProgressBar() as bar:
        bar.bar.mininterval = 0
        for step in (1, 2):
            bar(iterate(step, steps=2))
    shown = capsys.readouterr()
    assert shown.out == ""
    for part in ("loss 0.75", "scale 1/2", "6x4", "2/2"):
        assert part in shown.err


def test_progress_bar_goes_on_where_steps_were_made(capsys):
    with ProgressBar(done=4) as bar:
        bar.bar.mininterval = 0
        bar(iterate(5, steps=8))
    assert "5/8" in capsys.readouterr().err


class Full:
    """A standard error that takes nothing, from the first write or from some later one."""

    encoding = "utf-8"

    def __init__(self, writes):
        self.writes = writes

    def write(self, text):
        self.writes -= 1
        if self.writes < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self):
        pass


@pytest.mark.parametrize("stderr", [None, *map(Full, range(6))])
def test_a_progress_bar_that_cannot_be_drawn_costs_nothing(stderr, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stderr)
    with ProgressBar() as bar:
        for step in range(1, 4):
            bar.bar.mininterval = 0
            bar(iterate(step))


def test_progress_bar_reads_the_loss_only_when_it_draws(monkeypatch):
    reads = []
    original = torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda self: reads.append(1) or original(self))
    with ProgressBar() as bar:
        bar.bar.mininterval = 1000
        for step in range(1, 500):
            bar(iterate(step))
    assert len(reads) <= 1
