"""Films through a style network that keep some of the frame before."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from clips import tiny_film

from styletransfer.commands.apply.painter import Painter
from styletransfer.commands.apply.run import apply
from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.films import Film, FilmWriter
from styletransfer.films.flow import motion_between
from styletransfer.films.steady import Steady
from styletransfer.networks import Architecture, StyleNetwork, file
from styletransfer.networks.johnson import randomize

pytest.importorskip("av", reason="needs PyAV, of the extra [video]")
pytest.importorskip("cv2", reason="needs OpenCV, of the extra [video]")


@pytest.fixture
def config(tmp_path: Path) -> ApplyConfig:
    network = StyleNetwork(Architecture((3, 4, 5), 1), 1).requires_grad_(False)
    randomize(network, seed=1)
    file.write(tmp_path / "net.safetensors", network, ["oil"])
    paths = (tmp_path / "net.safetensors", tiny_film(tmp_path), tmp_path / "out.mp4")
    return ApplyConfig(*map(str, paths), device="cpu")


@pytest.mark.parametrize("steady", [0.0, 0.5])
def test_frames_are_mixed_with_the_ones_before(config, steady, monkeypatch, capsys):
    write, written = FilmWriter.write, []

    def watched(writer, image, time):
        written.append(image.clone())
        write(writer, image, time)

    monkeypatch.setattr(FilmWriter, "write", watched)
    apply(replace(config, steady=steady))
    painter, mixer = Painter(config), Steady(steady, motion_between)
    with Film(config.input) as film:
        contents = [frame.image for frame in film.frames()]
    alone = [painter.paint(content, 24) for content in contents]
    expected = [mixer.mixed(*pair) for pair in zip(contents, alone, strict=True)]
    assert len(written) == 3
    assert all(map(torch.equal, written, expected))
    assert torch.equal(written[0], alone[0])
    assert torch.equal(written[2], alone[2]) == (steady == 0)


def test_a_share_out_of_range_is_refused(config):
    with pytest.raises(UserError, match=r"steady=1\.0"):
        apply(replace(config, steady=1.0))
    assert not Path(config.output).exists()
