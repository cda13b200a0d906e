"""Films on a pretended GPU: no operation mixes devices."""

from pathlib import Path

import pytest
from films.clips import pan
from films.film_files import make
from helpers import composed, needs

from styletransfer.films.commands.film import film

needs("video", "cv2")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tiny_vgg", "gpu", "desk")]


@pytest.mark.parametrize("words", [[], ["style_source=clip.mp4:1"]], ids=["optimised", "painted"])
def test_a_film(words):
    """The painted frame is the second one, so the first one is followed back from it."""
    make(Path("clip.mp4"), [pan(time).float() for time in range(2)])
    tiny = ["experiment=tiny", "steps=4", "frame_steps=2", "device=cuda", "output=out.mp4"]
    film(composed("film", "content=clip.mp4", "style=style.png", *tiny, *words), Path("run"))
    assert Path("out.mp4").exists()
