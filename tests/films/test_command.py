"""The command `film` from command line to file: a film that resumes where it stopped."""

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from films.clips import pan
from films.film_files import frames as frames_of
from films.film_files import make, seconds, still
from helpers import (
    ROOT,
    check_error,
    check_kept,
    check_one_writer,
    check_refused,
    check_too_large,
    composed,
    files_in,
    needs,
    press,
)

from styletransfer import __version__
from styletransfer.errors import UserError
from styletransfer.films.commands.film import FilmConfig, film
from styletransfer.films.film_run import FREE_FILM_KEYS
from styletransfer.films.flicker import FrameOptimizer
from styletransfer.films.formats import CODECS, H264
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter
from styletransfer.pictures import images
from styletransfer.pictures.color import with_chroma_of
from styletransfer.runs.claim import made_by
from styletransfer.runs.commands.info import InfoConfig, info
from styletransfer.runs.recipe import recipe, text_of
from styletransfer.settings.compose import compose
from styletransfer.settings.values import for_hydra
from styletransfer.system.signals import STOPPING, Stopped

needs("video", "cv2")
pytestmark = pytest.mark.usefixtures("tiny_vgg", "signals")

COUNT = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "clip.mp4"
    return make(path, [pan(time).float() for time in range(COUNT)])


@pytest.fixture(scope="module")
def settings(source):
    """Return a film's settings without its style; composed once, as composing is slow."""
    words = [f"content={source}", "style=none", "experiment=tiny", "steps=4", "frame_steps=2"]
    return composed("film", *words)


@pytest.fixture
def config(settings, photos):
    return replace(settings, style=photos[1])


@pytest.fixture
def painting(monkeypatch):
    """Return two lists: the earlier frames given to each frame, and hooks called before each."""
    paint, seen, hooks = FrameOptimizer.paint, [], []

    def watched(optimizer, content):
        for hook in hooks:
            hook(len(seen))
        seen.append(optimizer.before)
        return paint(optimizer, content)

    monkeypatch.setattr(FrameOptimizer, "paint", watched)
    return seen, hooks


def test_a_film_has_the_frames_and_times_of_its_input(config, source, tmp_path, painting, capsys):
    film(config, tmp_path / "run")
    made = frames_of(tmp_path / "run" / "painted.mp4")
    assert capsys.readouterr().out == f"{tmp_path / 'run' / 'painted.mp4'}\n"
    assert [frame.time for frame in made] == [frame.time for frame in frames_of(source)]
    assert made[0].image.shape == (1, 3, 24, 32)
    for number, frame in enumerate(made):
        painted = images.read(tmp_path / "run" / "frames" / f"{number:06d}.png").rgb
        assert (frame.image - painted).abs().mean() < 0.1  # the codec's error
        assert (255 * painted).frac().max() > 0.1  # the file has 16 bits per sample
    contents = [frame.image for frame in frames_of(source)]
    first, *others = painting[0]
    assert first is None
    for before, content in zip(others, contents, strict=False):
        assert (before[0] - content).abs().max() < 1e-6
    note = json.loads((tmp_path / "run" / "film.json").read_text())
    assert note["config"]["temporal_weight"] == config.temporal_weight
    assert set(note["files"]) == {"content", "style"}
    painted = InfoConfig(str(tmp_path / "run" / "painted.mp4"), True, [str(source), "style.png"])
    info(painted, tmp_path)
    assert capsys.readouterr().out.splitlines()[-1].endswith("the same bytes")


@pytest.mark.parametrize("preset", ["classic", "painted"])
def test_the_command_of_a_recipe_has_all_settings(preset, source, photos, here):
    words = [f"content={source}", f"style={photos[1]}"]
    config = composed("film", *words, f"experiment={preset}", "size=64")
    text = text_of(
        "film", recipe(config, FREE_FILM_KEYS, device=torch.device("cpu"), precision="float32")
    )
    _, name, *typed = shlex.split(json.loads(text)["command"])
    given = {"content": config.content, "style": config.style}
    assert replace(composed(name, *typed), **given) == config


def test_it_goes_on_where_it_stopped_and_ends_the_same(config, tmp_path, painting, capsys):
    film(config, tmp_path / "whole")
    seen, hooks = painting
    hooks.append(lambda count: count != COUNT + 2 or press(STOPPING[0]))
    with pytest.raises(Stopped):
        film(config, tmp_path / "run")
    part = frames_of(tmp_path / "run" / "painted.styletransfer-partial.mp4")
    assert len(part) == len(files_in(tmp_path / "run" / "frames")) == 2
    assert not (tmp_path / "run" / "painted.mp4").exists()
    film(config, tmp_path / "run")
    assert len(seen) == 2 * COUNT + 1
    assert files_in(tmp_path / "run" / "frames") == files_in(tmp_path / "whole" / "frames")
    assert len(frames_of(tmp_path / "run" / "painted.mp4")) == COUNT


@pytest.mark.parametrize("extension", [".mp4", ".mkv", ".webm"])
def test_the_last_frame_is_shown_as_long_as_in_the_input(extension, config, tmp_path):
    content = still(tmp_path / "in.gif", [0.5, 0.25, 5.0], size=(32, 24))
    path = tmp_path / f"out{extension}"
    film(replace(config, content=str(content), output=str(path)), tmp_path / "run")
    assert seconds(path) == (5.75, 5.0)


def test_a_film_that_is_damaged_leaves_its_painted_part(config, tmp_path, painting, monkeypatch):
    def damaged(film, size):
        yield next(whole(film, size))
        raise UserError("clip.mp4 is damaged after frame 1")

    whole = Film.images
    monkeypatch.setattr(Film, "images", damaged)
    check_error("is damaged after frame 1", film, config, tmp_path)
    assert len(frames_of(tmp_path / "painted.styletransfer-partial.mp4")) == 1


def test_what_is_damaged_or_not_its_own_in_its_folder_is_told(config, tmp_path, photos, capsys):
    film(config, tmp_path)
    before, frame = files_in(tmp_path / "frames"), tmp_path / "frames" / "000001.png"
    frame.write_bytes(before[frame.name][:-40])
    check_error(r"frames/000001\.png is damaged or truncated", film, config, tmp_path)
    images.write(frame, torch.rand(1, 3, 8, 8))
    check_error(r"000001\.png is not 32 x 24 pixels, as this film; remove", film, config, tmp_path)
    frame.unlink()
    film(replace(config, output=str(tmp_path / "again.mkv")), tmp_path)
    assert len(frames_of(tmp_path / "again.mkv")) == COUNT
    other = replace(config, temporal_weight=1.0)
    with made_by({"overrides.yaml": "another command"}):
        check_error(r"temporal_weight=1\.0 differs.*hydra\.run\.dir", film, other, tmp_path)
    assert not (tmp_path / ".hydra").exists()
    moved = replace(config, content=photos[0])
    check_error(r"clip\.mp4; go on with that one, or start afresh in", film, moved, tmp_path)
    Path(photos[1]).write_bytes(Path(photos[0]).read_bytes())
    check_error(r"style=.* has changed .*hydra\.run\.dir", film, config, tmp_path)
    (tmp_path / "film.json").write_text(f'{{"version": "{__version__}", "files": []}}')
    check_error("is no run's record of this version", film, config, tmp_path)
    with (tmp_path / "film.json").open("wb") as file:
        file.truncate(2**40)  # a file with a hole, larger than memory
    check_error("is no run's record of this version", film, config, tmp_path)
    (tmp_path / "film.json").unlink()
    check_error(r"holds frames already; choose another folder", film, config, tmp_path)
    assert files_in(tmp_path / "frames") == before


def test_a_film_needs_a_folder_without_other_results(config, tmp_path, desk):
    for name, own in (("painted.mp4", "painted.mp4"), ("frames", "frames/000000.png")):
        (tmp_path / name / own).parent.mkdir(parents=True)
        (tmp_path / name / own).write_bytes(b"my own")
        check_error(f"holds {name} already; choose", film, config, tmp_path / name)
    (tmp_path / "own/frames").mkdir(parents=True)
    Path(config.style).rename(tmp_path / "own/frames/000001.png")
    own = replace(config, style=str(tmp_path / "own/frames/000001.png"))
    check_error(r"files in .*frames would overwrite style=", film, own, tmp_path / "own")


@pytest.mark.slow
def test_films_of_one_stem_have_their_own_folders():
    """Hydra cannot have ${ in such a name."""
    for name in ("a.mp4", "a.mov", "${c}.mov"):
        words = [for_hydra(f"content=x/{name}", FilmConfig), "style=b.jpg"]
        made = compose(film, words, with_hydra=True).hydra.run.dir
        assert made == f"outputs/films/{name.replace('$', '')}+b"


def test_the_colours_of_the_input_and_frames_by_themselves(
    config, source, tmp_path, monkeypatch, painting, capsys
):
    written = []
    monkeypatch.setattr(FilmWriter, "write", lambda writer, image, *when: written.append(image))
    colors = replace(config, color="content_luminance", color_strength=0.5)
    film(replace(colors, independent=True), tmp_path)
    assert painting[0] == [None] * COUNT
    for number, (image, frame) in enumerate(zip(written, frames_of(source), strict=True)):
        painted = images.read(tmp_path / "frames" / f"{number:06d}.png").rgb
        assert torch.equal(image, with_chroma_of(painted, frame.image, 0.5))


def test_any_films_can_be_measured_as_the_guide_says(source, here, capsys):
    for name in ("film", "alone", "painted"):
        (here / f"{name}.mp4").write_bytes(source.read_bytes())
    exec((ROOT / "docs" / "film.md").read_text().split("```python\n")[1].split("```")[0], {})
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert len({line.split("|")[2] for line in lines}) == 1 < len(lines)


def test_bad_input_is_one_line_and_leaves_nothing(config, tmp_path):
    cases = [
        ({"output": "film.xyz"}, "film.xyz"),
        ({"size": 8}, "8 x 6 pixels are too small"),
        ({"output": "out/%05d.png"}, "cannot write a film to out/%05d.png; use .mp4"),
        ({"content_regions": "auto"}, "content_regions=auto is for one picture; give a film"),
    ]
    check_refused(lambda **changed: film(replace(config, **changed), tmp_path / "run"), cases)
    assert not (tmp_path / "run").exists()


def test_an_output_is_no_input_and_has_one_writer(source, desk, capsys, monkeypatch):
    shutil.copy(source, "film.mp4")
    words = ["film", "experiment=tiny", "content=film.mp4", "style=style.png", "size=32"]
    check_kept(capsys, words, ["film.mp4", "style.png"], ".mp4")
    check_one_writer(capsys, words, ".mp4")
    monkeypatch.setitem(CODECS, ".mp4", ("mp4", H264._replace(longest=15)))
    monkeypatch.setattr(FrameOptimizer, "paint", pytest.fail)
    check_too_large(capsys, monkeypatch, words, ".mp4")
