"""Watchers of a run: metrics and progress bar, also when writing fails."""

import pytest
import torch
from helpers import largest_file, metrics_of, picture

from styletransfer.objective import Losses
from styletransfer.optimize import Iterate
from styletransfer.runs.watchers import Metrics, ProgressBar


def iterate(step=1, steps=10, loss=0.25):
    losses = Losses({"content/relu1_1": torch.tensor(loss), "style/relu1_1": torch.tensor(0.5)})
    return Iterate(step, steps, 1, 2, losses, picture(height=4, width=6))


def written(path, steps, done=0):
    with Metrics(path, done) as metrics:
        for step in range(done + 1, done + steps + 1):
            metrics(iterate(step))


def test_metrics_schema(tmp_path):
    """Check that the file is strict JSON, also where a loss is not finite."""
    with Metrics(tmp_path / "metrics.jsonl") as metrics:
        metrics(iterate(1))
        metrics(iterate(2, loss=float("nan")))
    assert "NaN" not in (tmp_path / "metrics.jsonl").read_text()
    size = {"scale": 1, "width": 6, "height": 4}
    assert metrics_of(tmp_path) == [
        {"step": 1, **size, "total": 0.75, "content/relu1_1": 0.25, "style/relu1_1": 0.5},
        {"step": 2, **size, "total": None, "content/relu1_1": None, "style/relu1_1": 0.5},
    ]


def test_metrics_are_written_when_a_run_breaks_and_when_flushed(tmp_path):
    def interrupted():
        with Metrics(tmp_path / "metrics.jsonl") as metrics:
            metrics(iterate(1))
            metrics.flush()
            assert len(metrics_of(tmp_path)) == 1
            metrics(iterate(2))
            # Waiting lines must not keep pictures: 20 of 4096 x 4096 pixels would take 4 GB.
            assert not any(isinstance(part, Iterate) for line in metrics.waiting for part in line)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(metrics_of(tmp_path)) == 2


def test_a_disk_that_fills_leaves_whole_lines(tmp_path, caplog):
    with largest_file(200), Metrics(tmp_path / "metrics.jsonl") as metrics:
        for step in range(1, 10):
            metrics(iterate(step))
            metrics.flush()
    assert (tmp_path / "metrics.jsonl").read_text().endswith("\n")
    assert [line["step"] for line in metrics_of(tmp_path)] == [1]
    assert caplog.text.count("File too large; going on without") == 1
    written(tmp_path / "nowhere" / "metrics.jsonl", 2)
    assert caplog.text.count("No such file or directory; going on without") == 1


def test_the_progress_bar_shows_loss_scale_and_size(capsys):
    with ProgressBar(done=4) as bar:
        bar.bar.mininterval = 0
        for step in (5, 6):
            bar(iterate(step, steps=8))
    shown = capsys.readouterr()
    assert shown.out == ""
    for part in ("loss 0.75", "scale 1/2", "6x4", "6/8"):
        assert part in shown.err
