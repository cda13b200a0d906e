"""What watches a run: metrics, snapshots, the progress bar; and what happens when it cannot."""

import errno
import json
import sys
from pathlib import Path

import pytest
import torch
from helpers import picture

from styletransfer.objective.criterion import Losses
from styletransfer.optimize.results import Iterate
from styletransfer.pictures import images
from styletransfer.runs.watchers import METRICS_BATCH, Metrics, ProgressBar, StepPictures


def iterate(step=1, steps=10, loss=0.25):
    losses = Losses({"content/relu1_1": torch.tensor(loss), "style/relu1_1": torch.tensor(0.5)})
    return Iterate(step, steps, 1, 2, losses, picture(height=4, width=6))


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path, steps, done=0):
    with Metrics(path, done) as metrics:
        for step in range(done + 1, done + steps + 1):
            metrics(iterate(step))


def test_metrics_schema(tmp_path):
    """Strict JSON, also where a loss is not finite."""
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        metrics(iterate(1))
        metrics(iterate(2, loss=float("nan")))
    assert "NaN" not in (tmp_path / "metrics.jsonl").read_text()
    size = {"scale": 1, "width": 6, "height": 4}
    assert lines_of(tmp_path / "metrics.jsonl") == [
        {"step": 1, **size, "total": 0.75, "content/relu1_1": 0.25, "style/relu1_1": 0.5},
        {"step": 2, **size, "total": None, "content/relu1_1": None, "style/relu1_1": 0.5},
    ]


def test_metrics_miss_no_step(tmp_path):
    for steps in (0, 1, METRICS_BATCH + 1, 3 * METRICS_BATCH - 1):
        written(tmp_path / f"{steps}", steps)
        assert [line["step"] for line in lines_of(tmp_path / f"{steps}")] == [*range(1, steps + 1)]


def test_metrics_are_written_when_a_run_breaks_and_when_flushed(tmp_path):
    def interrupted():
        with Metrics(tmp_path / "metrics.jsonl") as metrics:
            metrics(iterate(1))
            metrics.flush()
            assert len(lines_of(tmp_path / "metrics.jsonl")) == 1
            metrics(iterate(2))
            # Twenty pictures of 4096 pixels would be 3 GB.
            assert not any(isinstance(part, Iterate) for line in metrics.waiting for part in line)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(lines_of(tmp_path / "metrics.jsonl")) == 2


def test_metrics_go_on_after_the_steps_that_were_made(tmp_path):
    """What was written after them is written anew, and so is a line that was torn."""
    path = tmp_path / "metrics.jsonl"
    for done in (0, 3, 5, 9):
        path.unlink(missing_ok=True)
        written(path, 5)
        with path.open("a") as file:
            file.write('{"step": 6, "sca')
        written(path, 1, done)
        assert [line["step"] for line in lines_of(path)] == [*range(1, min(done, 5) + 1), done + 1]


def test_metrics_that_are_rewound_are_written_anew(tmp_path):
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        for step in (1, 2, 3):
            metrics(iterate(step))
        metrics.rewind(1)
        metrics(iterate(2, loss=1.0))
    assert [line["total"] for line in lines_of(tmp_path / "metrics.jsonl")] == [0.75, 1.5]


def test_metrics_that_cannot_be_written_say_so_once(tmp_path, caplog):
    written(tmp_path / "nowhere" / "metrics.jsonl", 2 * METRICS_BATCH)
    assert caplog.text.count("No such file or directory; going on without") == 1
    if Path("/dev/full").exists():
        written(Path("/dev/full"), 3 * METRICS_BATCH)
        assert caplog.text.count("No space left on device; going on without") == 1


def test_a_disk_that_fills_leaves_whole_lines(tmp_path, caplog):
    resource = pytest.importorskip("resource")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, old[1]))
    try:
        with Metrics(tmp_path / "metrics.jsonl") as metrics:
            for step in range(1, 10):
                metrics(iterate(step))
                metrics.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    text = (tmp_path / "metrics.jsonl").read_text()
    assert text.endswith("\n")
    assert [line["step"] for line in lines_of(tmp_path / "metrics.jsonl")] == [1]
    assert caplog.text.count("File too large; going on without") == 1


def test_snapshots(tmp_path):
    snapshots = StepPictures(tmp_path / "snapshots", every=3)
    for step in range(1, 8):
        snapshots(iterate(step))
    names = sorted(path.name for path in (tmp_path / "snapshots").iterdir())
    assert names == ["step_00003.png", "step_00006.png"]
    saved = images.read(tmp_path / "snapshots" / "step_00003.png").rgb
    assert (saved - picture(height=4, width=6)).abs().max() <= 0.5 / 255 + 1e-6


def test_progress_bar_shows_loss_scale_and_size_from_where_steps_were_made(capsys):
    with ProgressBar(done=4) as bar:
        bar.bar.mininterval = 0
        for step in (5, 6):
            bar(iterate(step, steps=8))
    shown = capsys.readouterr()
    assert shown.out == ""
    for part in ("loss 0.75", "scale 1/2", "6x4", "6/8"):
        assert part in shown.err


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


@pytest.mark.parametrize("stderr", [None, *map(Full, (0, 1, 5))])
def test_a_progress_bar_that_cannot_be_drawn_costs_nothing(stderr, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stderr)
    with ProgressBar() as bar:
        for step in range(1, 4):
            bar.bar.mininterval = 0
            bar(iterate(step))
