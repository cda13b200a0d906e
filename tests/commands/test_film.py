"""`film` and `flicker` from command line to file: a film that goes on where it stopped."""

import json
import os
from dataclasses import replace

import pytest
import torch
from clips import tiny_film
from helpers import composed

from styletransfer.cli import script
from styletransfer.commands.film.run import paint_film
from styletransfer.errors import UserError
from styletransfer.films import Film
from styletransfer.films.painter import FilmPainter
from styletransfer.pictures import images
from styletransfer.system.signals import STOPPING, Stopped

pytest.importorskip("av", reason="needs PyAV, of the extra [video]")
pytest.importorskip("cv2", reason="needs OpenCV, of the extra [video]")
pytestmark = pytest.mark.usefixtures("tiny_vgg", "signals")

COUNT = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A film of a few small frames."""
    return tiny_film(tmp_path_factory.mktemp("film"), COUNT)


@pytest.fixture
def config(source, photos):
    words = [f"content={source}", f"style={photos[1]}", "experiment=tiny", "steps=4"]
    return composed("film", *words, "frame_steps=2")


def frames_of(path):
    with Film(path) as film:
        return list(film.frames())


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "frames").iterdir()}


def test_a_film_has_the_frames_and_times_of_its_input(config, source, tmp_path, capsys):
    said = paint_film(config, tmp_path / "run")
    made = frames_of(tmp_path / "run" / "painted.mp4")
    assert said.splitlines()[-1] == str(tmp_path / "run" / "painted.mp4")
    assert "E_warp" in said
    assert [frame.time for frame in made] == [frame.time for frame in frames_of(source)]
    assert made[0].image.shape == (1, 3, 24, 32)
    for number, frame in enumerate(made):
        kept = images.read(tmp_path / "run" / "frames" / f"{number:06d}.png").rgb
        assert (frame.image - kept).abs().mean() < 0.1  # but for the codec


def test_it_goes_on_where_it_stopped_and_ends_the_same(config, tmp_path, monkeypatch, capsys):
    paint_film(config, tmp_path / "whole")
    paint, done = FilmPainter.paint, []

    def pressing(painter, content):
        if len(done) == 2:
            os.kill(os.getpid(), STOPPING[0])
        done.append(content)
        return paint(painter, content)

    monkeypatch.setattr(FilmPainter, "paint", pressing)
    with pytest.raises(Stopped):
        paint_film(config, tmp_path / "run")
    part = frames_of(tmp_path / "run" / "painted.partial.mp4")
    assert len(part) == len(files(tmp_path / "run")) == 2
    assert not (tmp_path / "run" / "painted.mp4").exists()
    paint_film(config, tmp_path / "run")
    assert len(done) == 4
    assert files(tmp_path / "run") == files(tmp_path / "whole")
    assert len(frames_of(tmp_path / "run" / "painted.mp4")) == COUNT


def test_other_settings_are_refused_in_its_folder(config, tmp_path, capsys):
    paint_film(config, tmp_path)
    before = files(tmp_path)
    paint_film(replace(config, output=str(tmp_path / "again.mkv")), tmp_path)
    assert len(frames_of(tmp_path / "again.mkv")) == COUNT
    with pytest.raises(UserError, match=r"other settings.*hydra\.run\.dir"):
        paint_film(replace(config, temporal_weight=1.0), tmp_path)
    assert files(tmp_path) == before


def test_frames_by_themselves_know_nothing_of_one_another(config, tmp_path, monkeypatch, capsys):
    paint, seen = FilmPainter.paint, []

    def watched(painter, content):
        seen.append(painter.before)
        return paint(painter, content)

    monkeypatch.setattr(FilmPainter, "paint", watched)
    paint_film(replace(config, independent=True), tmp_path)
    assert seen == [None] * COUNT


def test_the_colours_of_the_input(config, source, tmp_path, capsys):
    kept = replace(config, color="content_luminance")
    paint_film(kept, tmp_path)
    made, there = frames_of(tmp_path / "painted.mp4"), frames_of(source)
    difference = [
        (a.image.mean((2, 3)) - b.image.mean((2, 3))).diff().abs().max()
        for a, b in zip(made, there, strict=True)
    ]
    assert max(difference) < 0.1


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("frame_steps=0", "frame_steps=0 must be 1 or more"),
        ("temporal_weight=-1", "temporal_weight=-1.0 must be from 0"),
        ("temporal_weight=nan", "temporal_weight=nan must be from 0"),
        ("output=film.xyz", "film.xyz"),
        ("content=nothing.mp4", "nothing.mp4"),
        ("size=8", "8 x 6 pixels are too small"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    word, message, source, photos, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    words = [f"content={source}", f"style={photos[1]}", "experiment=tiny", word]
    with pytest.raises(SystemExit) as exit:
        script("film")(words)
    printed = capsys.readouterr().err.splitlines()
    assert exit.value.code == 1
    assert message in printed[-1]
    assert {path.name for path in tmp_path.iterdir()} <= before | {"outputs"}
    assert not list(tmp_path.rglob("frames"))


def test_a_note_of_what_was_painted(config, tmp_path, capsys):
    paint_film(config, tmp_path)
    told = json.loads((tmp_path / "film.json").read_text())
    assert told["settings"]["temporal_weight"] == config.temporal_weight
    assert {key for key, _ in told["files"]} == {"content", "style"}


def test_flicker_compares_with_the_first(config, source, tmp_path, monkeypatch, capsys):
    paint_film(config, tmp_path)
    painted = tmp_path / "painted.mp4"
    (tmp_path / "copy.mp4").write_bytes(painted.read_bytes())
    script("flicker")([f"input={source}", f"painted=[{painted},{tmp_path / 'copy.mp4'}]"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split("|")[1].strip() == "input"
    assert "(1.00)" in lines[3]
    assert "(1.00)" in lines[4]


def test_flicker_refuses_films_that_do_not_fit(source, tmp_path, capsys):
    for words, message in (
        ([f"painted={tmp_path / 'no.mp4'}"], "no film at"),
        ([f"painted=[{source},{source}]"], "twice"),
        (["painted=[]"], "names no film"),
    ):
        with pytest.raises(SystemExit):
            script("flicker")([f"input={source}", *words])
        assert message in capsys.readouterr().err


def test_flicker_measures_the_style(source, photos, capsys):
    script("flicker")([f"input={source}", f"painted={source}", f"style={photos[1]}"])
    cells = capsys.readouterr().out.splitlines()[3].split("|")
    assert float(cells[4]) > 0
    assert torch.isfinite(torch.tensor(float(cells[2])))
