"""Films through style networks: frame by frame, alone and in folders."""

import os
import re
import signal
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from film_files import frames, make, sounds
from helpers import picture
from PIL import Image

from styletransfer.commands.apply.painter import Painter
from styletransfer.commands.apply.run import apply
from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.networks import Architecture, StyleNetwork, file
from styletransfer.networks.johnson import randomize
from styletransfer.pictures import images
from styletransfer.pictures.color import with_chroma_of
from styletransfer.system.signals import Stopped

UNEVEN = [Fraction(n, 10) for n in (0, 1, 3, 4, 9)]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a network, and a film of five frames and a tone."""
    monkeypatch.chdir(tmp_path)
    network = StyleNetwork(Architecture((3, 4, 5), 1), 1).requires_grad_(False)
    randomize(network, seed=1)
    file.write(Path("net.safetensors"), network, ["oil"])
    make(Path("in.mp4"), shades(), UNEVEN, sound="aac")
    return tmp_path


def shades() -> list[torch.Tensor]:
    """Return five gentle images: a codec keeps them nearly as they are."""
    row = torch.linspace(0, 1, 34).expand(1, 3, 26, 34)
    return [(row * (0.2 + 0.15 * n)).float() for n in range(5)]


def settings(**changed: object) -> ApplyConfig:
    config = ApplyConfig("net.safetensors", "in.mp4", "out.mp4", device="cpu")
    return replace(config, **changed)  # type: ignore[arg-type]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def expected(size: tuple[int, int] = (26, 34)) -> list[torch.Tensor]:
    network = file.read(Path("net.safetensors")).network
    shown = [images.resize(frame.image, size) for frame in frames(Path("in.mp4"))]
    return [network(image, torch.ones(1, 1)) for image in shown]


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Tell whether two frames have the same luma, but for the codec; chroma has half the size."""
    weights = torch.tensor([0.2126, 0.7152, 0.0722]).view(1, 3, 1, 1)
    return float(((ours - theirs) * weights).sum(dim=1).abs().mean()) < 0.015


@pytest.mark.usefixtures("desk")
def test_each_frame_is_what_the_network_makes_of_it() -> None:
    assert apply(settings()) == Path("out.mp4")
    painted = frames(Path("out.mp4"))
    assert [frame.time for frame in painted] == UNEVEN
    assert all(close(a.image, b) for a, b in zip(painted, expected(), strict=True))
    assert not close(painted[0].image, expected()[4])
    assert sounds(Path("out.mp4"))[0][:2] == sounds(Path("in.mp4"))[0][:2]


@pytest.mark.usefixtures("desk")
def test_size_color_and_strips_work_as_for_pictures() -> None:
    apply(settings(output="small.webm", size=25))
    assert all(
        close(frame.image, theirs)
        for frame, theirs in zip(frames(Path("small.webm")), expected((19, 25)), strict=True)
    )
    apply(settings(output="strips.mp4", strip=8))
    apply(settings())
    for a, b in zip(frames(Path("strips.mp4")), frames(Path("out.mp4")), strict=True):
        assert float((a.image - b.image).abs().mean()) < 0.01
    apply(settings(output="colors.mp4", color="content_luminance"))
    shown = frames(Path("in.mp4"))
    for frame, content, plain in zip(frames(Path("colors.mp4")), shown, expected(), strict=True):
        assert close(frame.image, with_chroma_of(plain, content.image, 1.0))


def test_a_folder_of_pictures_and_films(desk: Path, caplog: pytest.LogCaptureFixture) -> None:
    images.write(desk / "album" / "a.png", picture(0, 12, 16))
    (desk / "album" / "trip").mkdir()
    make(desk / "album" / "trip" / "b.MOV", shades())
    make(desk / "album" / "c.avi", shades(), codec="mpeg4")
    (desk / "album" / "broken.mkv").write_bytes(b"no film")
    with pytest.raises(UserError, match="1 of 4 files could not be painted"):
        apply(settings(input="album", output="done"))
    assert "broken.mkv is no film that FFmpeg can read" in caplog.text
    assert files(desk / "done") == ["a.png", "c.avi.mp4", "trip/b.MOV"]
    assert [len(frames(desk / "done" / name)) for name in ("c.avi.mp4", "trip/b.MOV")] == [5, 5]
    before = {name: (desk / "done" / name).stat().st_mtime_ns for name in files(desk / "done")}
    (desk / "album" / "broken.mkv").unlink()
    with caplog.at_level("INFO"):
        apply(settings(input="album", output="done"))
    assert "3 of 3 files are there already" in caplog.text
    after = {name: (desk / "done" / name).stat().st_mtime_ns for name in files(desk / "done")}
    assert after == before


@pytest.mark.usefixtures("signals")
def test_ctrl_c_leaves_a_film_that_plays_and_is_not_taken_for_complete(
    desk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (desk / "album").mkdir()
    (desk / "in.mp4").rename(desk / "album" / "in.mp4")
    paint, count = Painter.paint, 0

    def pressed(self: Painter, content: torch.Tensor, rows: int) -> torch.Tensor:
        nonlocal count
        count += 1
        if count == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return paint(self, content, rows)

    monkeypatch.setattr(Painter, "paint", pressed)
    config = settings(input="album", output="done")
    with pytest.raises(Stopped):
        apply(config)
    assert files(desk / "done") == ["in.partial.mp4"]
    assert len(frames(desk / "done" / "in.partial.mp4")) == 3
    assert re.search(r"the film up to here is in .*in\.partial\.mp4", caplog.text)
    apply(config)
    assert files(desk / "done") == ["in.mp4"]
    assert len(frames(desk / "done" / "in.mp4")) == 5


def test_what_comes_before_damage_is_painted(desk: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    noise = [torch.rand(1, 3, 48, 64, generator=generator) for _ in range(10)]
    made = bytearray(make(desk / "whole.mp4", noise, g="1").read_bytes())
    made[len(made) // 2 : len(made) // 2 + 5000] = bytes(5000)
    (desk / "in.mp4").write_bytes(made)
    with pytest.raises(UserError, match=r"in\.mp4 is damaged after frame [3-6] ") as caught:
        apply(settings())
    count = int(str(caught.value).split("after frame ")[1].split()[0])
    assert not (desk / "out.mp4").exists()
    assert len(frames(desk / "out.partial.mp4")) == count


@pytest.mark.usefixtures("desk")
def test_a_moving_gif_can_become_a_film() -> None:
    first, *others = (Image.new("RGB", (16, 12), name) for name in ("teal", "navy", "olive"))
    first.save("in.gif", save_all=True, append_images=others, duration=200)
    apply(settings(input="in.gif"))
    painted = frames(Path("out.mp4"))
    assert [frame.time for frame in painted] == [0, Fraction(1, 5), Fraction(2, 5)]
    assert painted[0].image.shape == (1, 3, 12, 16)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"output": "out.png"}, "input=in.mp4 is a film and output=out.png is not"),
        ({"output": "in.mp4"}, "output=in.mp4 would overwrite the input"),
        ({"input": "left.partial.mp4", "output": "left.mp4"}, "would overwrite the film left"),
        ({"input": "none.mp4"}, "no film at none.mp4"),
        ({"input": "net.safetensors"}, "net.safetensors is no film that FFmpeg can read"),
        ({"size": 9}, "in.mp4 comes down to 9 x 7 pixels; each side needs at least 8"),
        ({"network": "[a,b]"}, "no style network at [a,b]"),
        ({"style_weights": [1.0, 2.0]}, "holds 2 numbers, and the network has 1 style"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    desk: Path, changed: dict[str, object], message: str
) -> None:
    make(desk / "left.partial.mp4", shades())
    before = files(desk)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        apply(settings(**changed))
    assert "\n" not in str(caught.value)
    assert files(desk) == before
