"""Films on a pretended GPU: no operation mixes devices."""

import json
from pathlib import Path

import pytest
from films.clips import pan
from films.film_files import make
from helpers import composed, needs
from optimize.test_captured import refused
from recorded import recorded

from styletransfer.films.commands.film import film
from styletransfer.optimize import run
from styletransfer.runs.recipe import carried

needs("video", "cv2")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tiny_vgg", "gpu", "desk")]


@pytest.mark.parametrize("words", [[], ["style_source=clip.mp4:1"]], ids=["optimised", "painted"])
def test_a_film(words):
    """The painted frame is the second one, so the first one is followed back from it."""
    make(Path("clip.mp4"), [pan(time).float() for time in range(2)])
    tiny = ["experiment=tiny", "steps=4", "frame_steps=2", "device=cuda", "output=out.mp4"]
    film(composed("film", "content=clip.mp4", "style=style.png", *tiny, *words), Path("run"))
    assert Path("out.mp4").exists()


@pytest.mark.parametrize("is_captured", [True, False])
def test_a_film_says_whether_it_was_captured(is_captured, monkeypatch):
    """A film that is done stays as its record says."""

    monkeypatch.setattr(run, "captured_on_cuda", recorded if is_captured else refused)
    make(Path("clip.mp4"), [pan(time).float() for time in range(2)])
    words = ["experiment=tiny", "steps=4", "frame_steps=2", "device=cuda", "captured=true"]
    config = composed("film", "content=clip.mp4", "style=style.png", *words)
    for _ in range(2):
        film(config, Path("run"))
        told = json.loads(Path("run/film.json").read_text())["config"]["captured"]
        word = "captured=true" in carried(Path("run/painted.mp4"))["command"]
        assert (told, word) == (is_captured, is_captured)
    if is_captured:  # a missing frame that is painted without graphs does not change that
        Path("run/frames/000001.png").unlink()
        monkeypatch.setattr(run, "captured_on_cuda", refused)
        film(config, Path("run"))
        assert json.loads(Path("run/film.json").read_text())["config"]["captured"]
