"""Progress bars: a bar in a terminal, at most ten lines in a log."""

import io
import sys

from styletransfer.system.progress import progress_bar


class Stream(io.TextIOWrapper):
    """A text file in memory, which may say that it is a terminal."""

    def __init__(self, *, terminal=False):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    @property
    def text(self):
        return self.buffer.getvalue().decode()


def redirected(monkeypatch, **kind):
    """Return the stream that is standard error from now on."""
    stream = Stream(**kind)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_a_log_gets_a_line_for_each_tenth(monkeypatch):
    log = redirected(monkeypatch)
    assert list(progress_bar(range(200), unit="file")) == list(range(200))
    lines = log.text.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"{n}/200 files" for n in range(20, 201, 20)]
    assert "\r" not in log.text


def test_a_line_shows_what_is_set_after_its_step(monkeypatch):
    log = redirected(monkeypatch)
    with progress_bar(total=4, unit="step", initial=1) as bar:
        for step in (2, 3, 4):
            if bar.update(1):
                bar.set_postfix_str(f"loss {step}")
    shown = [line.rpartition(",")[0] for line in log.text.splitlines()]
    assert shown == [f"{n}/4 steps, loss {n}" for n in (2, 3, 4)]


def test_a_narrow_terminal_shows_the_loss(monkeypatch):
    stream = redirected(monkeypatch, terminal=True)
    monkeypatch.setenv("COLUMNS", "40")
    with progress_bar(total=100, unit="step", leave=False) as bar:
        bar.ncols, bar.dynamic_ncols = 40, None
        bar.set_postfix_str("loss 0.06646", refresh=False)
        bar.set_description_str("scale 3/3 512x341")
        bar.refresh()
    assert "0/100, loss 0.06646 scale 3/3 512x341" in stream.text


def test_a_terminal_gets_a_bar(monkeypatch):
    stream = redirected(monkeypatch, terminal=True)
    assert list(progress_bar(range(3), unit="file")) == [0, 1, 2]
    assert "100%" in stream.text
    assert "\r" in stream.text


def test_nothing_is_shown_where_it_is_not_wanted(monkeypatch):
    log = redirected(monkeypatch)
    list(progress_bar(range(3), disable=True))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    list(progress_bar(range(3)))
    assert log.text == ""
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress_bar(range(3))) == [0, 1, 2]
