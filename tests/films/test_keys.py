"""Frames of a film by their number or time, and painted frames in a folder."""

from pathlib import Path

import pytest
import torch
from films.clips import grid, scene
from films.film_files import frames, make, still
from helpers import call, check_kept, composed, files_in, needs, refusal, status_of
from PIL import Image

from styletransfer.films.commands.film import film
from styletransfer.films.keys import with_keys
from styletransfer.films.read import Film
from styletransfer.pictures import images
from styletransfer.settings.compose import compose

needs("video", "cv2")
TIMES = [0, 0.1, 0.4, 0.5]  # in seconds; the film ends 0.1 s after the last
FILM = ["film", "content=film.mp4", "size=32", "device=cpu"]


@pytest.fixture
def clip(here):
    """Write film.mp4, of four frames at TIMES; return its frames (1, 3, 24, 32)."""
    x, y = grid()
    make(here / "film.mp4", [scene(x + 4 * n, y).float() for n in range(4)], TIMES)
    return [one.image for one in frames("film.mp4")]


def paint(path, image):
    """Write a painting of a frame, in other colours."""
    images.write(path, image.flip(1))


@pytest.mark.parametrize(
    ("place", "number"),
    [("0", 0), ("3", 3), ("002", 2), ("0s", 0), ("0.39s", 1), (".4s", 2), ("0.599s", 3)],
)
def test_a_frame_is_read_by_its_number_or_time(clip, place, number):
    assert torch.equal(images.read(f"film.mp4:{place}").rgb, clip[number])


def test_a_frame_of_an_animated_picture_is_read_too(here):
    still("moving.gif", [0.5, 0.25])
    assert torch.equal(images.read("moving.gif:0.6s").rgb, frames("moving.gif")[1].image)


def test_a_file_with_the_whole_name_comes_first(clip):
    Image.new("RGB", (9, 9), "red").save("film.mp4:1", "PNG")
    assert images.read("film.mp4:1").size == (9, 9)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("film.mp4:4", "there is no film.mp4:4; the film has 4 frames, counted from 0"),
        ("film.mp4:0.6s", "there is no film.mp4:0.6s; the film ends after 0.6 seconds"),
        ("film.mp4:-1", "film.mp4:-1 does not exist"),
        ("gone.mp4:1", "gone.mp4:1 does not exist"),
        ("notes.mp4:1", "notes.mp4 is no film that FFmpeg can read"),
    ],
)
def test_what_is_no_frame_of_a_film_is_told(clip, tiny_vgg, capsys, name, problem):
    Path("notes.mp4").write_text("no film")
    paint("painted.png", clip[1])
    for words in ([f"style_source={name}"], ["style_source=film.mp4:1", f"content={name}"]):
        assert problem in refusal(capsys, "train", "style=painted.png", "size=32", *words)


@pytest.mark.slow
def test_a_picture_from_frames_is_made_again(clip, tiny_vgg, capsys):
    paint("painted.png", clip[1])
    pair = ["style=painted.png", "style_source=film.mp4:1", "content=film.mp4:.5s"]
    words = ["train", *pair, "size=32", "steps=2"]
    assert status_of(*words, "output=made.png") == 0
    check_kept(capsys, words, ["film.mp4"], ".png")
    assert status_of("info", "made.png", "verify=true") == 0
    assert "the same bytes" in capsys.readouterr().out


def test_keys_are_painted_frames_with_their_numbers(clip, here):
    Path("keys").mkdir()
    for name in ("take2_0003.png", "1.jpg"):
        paint(f"keys/{name}", clip[0])
    with Film("film.mp4") as film:
        config = with_keys(composed("film", "content=film.mp4", "keys=keys"), film)
    named = ["style=[keys/1.jpg,keys/take2_0003.png]", "style_source=[film.mp4:1,film.mp4:3]"]
    assert config == composed("film", "content=film.mp4", *named)


@pytest.mark.slow
@pytest.mark.parametrize("content", ["film.mp4", "shot"])
def test_each_key_of_a_picture_that_stands_still_is_its_frame(here, tiny_vgg, content):
    for folder in ("keys", "shot"):
        Path(folder).mkdir()
    calm = scene(*grid()).float()
    make("film.mp4", [calm] * 3)
    for number, level in ((0, 0.2), (2, 0.8)):
        images.write(f"keys/{number}.png", torch.full_like(calm, level))
    for number in range(3):
        images.write(f"shot/{number}.png", calm)
    assert status_of(*FILM, f"content={content}", "keys=keys", "hydra.run.dir=run") == 0
    made = [images.read(path).rgb.mean() for path in sorted(Path("run/frames").glob("*.png"))]
    assert [float(level) for level in made] == pytest.approx([0.2, 0.5, 0.8], abs=0.02)


def test_keys_of_a_folder_of_frames_have_their_numbers(clip):
    for folder in ("keys", "shot"):
        Path(folder).mkdir()
    for number, frame in enumerate(clip, 7):
        images.write(f"shot/a{number}.png", frame)
    paint("keys/b_08.png", clip[1])
    with Film("shot") as film:
        config = with_keys(composed("film", "content=shot", "keys=keys"), film)
    assert config.style_source == ["shot/a8.png"]


@pytest.mark.parametrize(
    ("names", "words", "problem"),
    [
        (["ink.png"], [], "keys/ink.png has no number in its name"),
        (["1.png", "a01.png"], [], "keys/1.png and keys/a01.png paint frame 1; remove one"),
        (["9.png"], [], "there is no film.mp4:9; the film has 4 frames"),
        (["1.png"], ["style=keys/1.png"], "keys names the paintings; leave style"),
        (["1.png"], ["style_source=film.mp4:1"], "keys names the paintings; leave style"),
        ([], ["keys=film.mp4"], "film.mp4 has no number in its name"),
        (["5.png"], ["content=shot"], "shot has no frames with 5 last in their names"),
        (["1.png"], ["content=shot"], "shot has 2 frames with 1 last in their names"),
    ],
)
def test_keys_that_paint_no_frame_are_refused(clip, tiny_vgg, capsys, names, words, problem):
    for folder in ("keys", "shot"):
        Path(folder).mkdir()
    for name in ("a1.png", "b1.png"):
        images.write(f"shot/{name}", clip[0])
    for name in names:
        paint(f"keys/{name}", clip[1])
    before = files_in(".")
    assert problem in refusal(capsys, *FILM, "keys=keys", *words)
    assert files_in(".") == before


def test_without_a_painting_a_frame_is_written_to_paint(clip, tiny_vgg, capsys):
    Path("keys").mkdir()
    status, printed = call(capsys, *FILM, "keys=keys")
    path = Path("outputs/films/film.mp4+keys/to_paint/000002.png")
    assert status == 0
    assert printed.out.splitlines()[0] == str(path.absolute())
    torch.testing.assert_close(images.read(path).rgb, clip[2], rtol=0, atol=1 / 255)


@pytest.mark.slow
def test_another_painting_begins_another_film(here):
    folders = []
    for number, color in [(1, "red"), (2, "red"), (2, "blue")]:
        Path("keys").mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), color).save(f"keys/{number}.png")
        words = ["content=film.mp4", "keys=keys"]
        folders += [compose(film, words, with_hydra=True).hydra.run.dir for _ in range(2)]
    assert len(set(folders)) == 3
    assert all(one.startswith("outputs/films/film.mp4+keys-") for one in folders)


@pytest.mark.slow
def test_the_frame_to_paint_next_is_written(tiny_vgg, here, capsys):
    """Check a film whose camera stands still, but at the end another scene comes in."""
    x, y = grid()
    calm = scene(x, y).float()
    new = calm.clone()
    new[..., 8:20, 10:30] = 1 - calm[..., 8:20, 10:30]
    make(here / "film.mp4", [calm] * 12 + [new] * 6)
    Path("keys").mkdir()
    paint("keys/0.png", calm)
    for _ in range(2):  # also by the command that finds the film complete
        status, printed = call(capsys, *FILM, "keys=keys")
        (path,) = Path("outputs").rglob("to_paint/*.png")
        assert (status, path.stem) == (0, "000017")
        assert f"to paint next: {path.absolute()}, frame 17" in printed.out
        path.unlink()
