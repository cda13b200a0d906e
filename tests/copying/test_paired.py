"""Paired painting: a picture is painted as a photograph was."""

import shlex
from pathlib import Path

import pytest
import torch
from helpers import call, composed, picture, press, refusal, status_of, tiny_network
from torch.nn.functional import avg_pool2d, interpolate

from styletransfer import stylize
from styletransfer.copying import paired
from styletransfer.copying.copied import Refinement, copied, pixels, roughness
from styletransfer.copying.paired import FITS, Photographs, agreement, correspondence
from styletransfer.copying.screens import Screen
from styletransfer.job.prepare import prepare
from styletransfer.objective.inputs import Correspondence, Inputs, Region, StylePart
from styletransfer.pictures import images
from styletransfer.runs.recipe import carried
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals

VGG19 = ((4, 4), (4, 4), (4, 4, 4, 4), (4, 4, 4, 4), (4,))
EVERYWHERE = (Region(),)
PAIR = ["content=content.png", "style=style.png", "size=48"]


def photo(seed=0, height=40, width=48):
    """Return smooth noise (1, 3, height, width)."""
    coarse = picture(seed, height // 4 + 2, width // 4 + 2).float()
    return interpolate(coarse, (height, width), mode="bicubic").clamp(0, 1)


def painted(photograph):
    """Return a painting of a photograph: other colours, and stripes where it is dark."""
    stripes = (torch.arange(photograph.shape[3]) % 3 < 1).float()
    dark = (photograph.mean(1, keepdim=True) < 0.5).float()
    return (photograph.flip(1) * (1 - 0.8 * dark * stripes)).clamp(0, 1)


def matched(content, sources, regions=EVERYWHERE):
    """Return the correspondence of a content image and photographs."""
    pictures = Inputs(content, tuple(map(painted, sources)), regions, sources=tuple(sources))
    return correspondence(tiny_network(VGG19).float(), pictures)


@pytest.fixture
def written(here, tiny_vgg):
    """Write a frame, a photograph and its painting into the current folder."""
    images.write("content.png", photo(1))
    images.write("photo.png", photo(2))
    images.write("style.png", painted(photo(2)))
    return here


@pytest.fixture
def small_search(monkeypatch):
    """Let a search reduce pictures of more than 48 pixels."""
    monkeypatch.setattr(paired, "CONTENT_SIDE", 48)


def test_the_painted_photograph_comes_back_as_it_was_painted(tiny_vgg):
    wanted = painted(photo())
    made = stylize(photo(), wanted, style_source=photo(), size=48, precision="float32")
    assert (made.image - wanted).abs().mean() < 2 / 255


def test_a_moved_photograph_gets_its_painting_moved():
    whole = photo(0, 40, 64)
    key, frame = whole[..., :56], whole[..., 8:]
    pictures = Inputs(frame, (key.flip(1),), EVERYWHERE, sources=(key,))
    made = copied(correspondence(tiny_network(VGG19).float(), pictures), pictures.styles)
    difference = avg_pool2d(made - frame.flip(1), 4)[..., 1:-1, 1:-3].abs()
    assert difference.mean() < 0.03  # one colour for all has 0.14


def test_each_region_is_painted_from_its_style():
    left = (torch.arange(48) < 24).float().expand(1, 1, 40, 48)
    regions = (
        Region("left", left, (StylePart(1),)),
        Region("right", 1 - left, (StylePart(0),)),
    )
    found = matched(photo(0), [photo(0), photo(1)], regions)
    assert found.places[0].eq((torch.arange(48) < 24).long()).all()


def test_only_the_weighted_part_of_a_style_is_copied():
    upper = (torch.arange(40) < 20).float()[:, None].expand(1, 1, 40, 48)
    regions = (Region(sources=(StylePart(0, weights=upper),)),)
    assert matched(photo(0), [photo(0)], regions).places[1].max() < 20


def test_of_equal_pixels_the_one_in_place_is_copied():
    grey = torch.full((1, 3, 40, 48), 0.5)
    found = matched(grey, [grey])
    assert found.places[1].equal(torch.arange(40.0)[:, None].expand(40, 48))
    assert found.places[2].equal(torch.arange(48.0).expand(40, 48))


def noisy(seed):
    """Return a sky (1, 3, 48, 64) with noise, and something dark at its left."""
    return 0.7 - 0.5 * (torch.arange(64) < 20) + 0.05 * picture(seed, 48, 64).float()


def shaken(reach, height=48, width=64):
    """Return random matches at most `reach` rows and columns from the places of the pixels."""
    random = torch.Generator().manual_seed(0)
    moves = torch.randint(-reach, reach + 1, (2, height, width), generator=random)
    rows, columns = torch.arange(height)[:, None], torch.arange(width)[None]
    down, right = (rows + moves[0]).clamp(0, height - 1), (columns + moves[1]).clamp(0, width - 1)
    return Correspondence(torch.stack([0 * down, down, right]).float(), [(height, width)])


def test_a_copy_has_smooth_edges_if_the_painting_has():
    """Check a soft edge whose single pixels are copied from places beside the right ones."""
    y, x = torch.meshgrid(torch.arange(48.0), torch.arange(64.0), indexing="ij")
    edge = torch.sigmoid((x - 20 - y / 3) / 1.5).expand(1, 3, -1, -1)
    found = shaken(1)
    made, single = copied(found, [edge]), pixels(found, [edge])
    assert (made - edge).abs().mean() < (single - edge).abs().mean() / 2


@pytest.mark.parametrize("fine", [0.2, 0.8])
def test_a_copy_is_as_rough_as_the_painting(fine):
    """Check grain of which distant places are copied: the mean of patches has less."""
    grain = images.blurred(picture(1, 48, 64).float(), fine)
    made = copied(shaken(16), [grain])
    assert roughness(made).mean() == pytest.approx(float(roughness(grain).mean()), rel=0.2)


@pytest.mark.parametrize("shape", ["dots", "lines", "slanted"])
def test_a_texture_of_the_page_keeps_its_period(shape):
    """Check textures of period 4: what is copied is the same 4 rows and 4 columns further."""
    y, x = torch.meshgrid(torch.arange(48), torch.arange(64), indexing="ij")
    ink = {"dots": (y % 4 < 2) & (x % 4 < 2), "lines": x % 4 < 2, "slanted": (x + y) % 4 < 2}
    page = ink[shape].float().expand(1, 3, 48, 64)
    pictures = Inputs(noisy(1), (page,), sources=(noisy(0),))
    made = pixels(correspondence(tiny_network(VGG19).float(), pictures), [page])
    assert (made[..., 4:, :] - made[..., :-4, :]).abs().mean() < 0.02
    assert (made[..., 4:] - made[..., :-4]).abs().mean() < 0.02


def turns(height, width, down, right):
    """Return a wave (height, width) from 0 to 1, of `down` and `right` cycles per pixel."""
    y, x = torch.arange(height)[:, None], torch.arange(width)
    return torch.cos(2 * torch.pi * (down * y + right * x)) / 2 + 0.5


def by_hand(height, width, slope=0.5):
    """Return straight lines (height, width) from 0 to 1, at distances from 3 to 6 pixels."""
    random = torch.Generator().manual_seed(3)
    places = (3 + 3 * torch.rand(height + width, generator=random)).cumsum(0)
    across = torch.arange(height)[:, None] + slope * torch.arange(width)
    number = torch.bucketize(across, places)
    start = torch.cat([torch.zeros(1), places])[number]
    return torch.cos(2 * torch.pi * (across - start) / (places[number] - start)) / 2 + 0.5


SCREENS = {
    "by hand": by_hand,
    "ruled by hand": lambda *size: by_hand(*size, slope=0.0),
    "lines": lambda *size: turns(*size, 0.19, 0),
    "hatching": lambda *size: turns(*size, 0.13, -0.16),
    "dots": lambda *size: (turns(*size, 0.15, 0.08) + turns(*size, -0.08, 0.15)) / 2,
}


def inked(photograph, screen):
    """Return a print: paper where a photograph is lighter than a `screen` (H, W), else ink."""
    light = photograph.mean(1, keepdim=True).expand(1, 3, -1, -1)
    return ((light - screen) * 4 + 0.5).clamp(0, 1)


@pytest.mark.parametrize("side", [112, 72], ids=["searched", "reduced"])
@pytest.mark.parametrize("shape", SCREENS)
def test_a_screen_stays_at_its_place_of_the_page(shape, side, monkeypatch):
    """Check prints of two different photographs; lines of another phase would differ everywhere."""
    monkeypatch.setattr(paired, "CONTENT_SIDE", side)
    screen = SCREENS[shape](96, 112)
    key, frame = (photo(seed, 96, 112) for seed in (2, 3))
    pictures = Inputs(frame, (inked(key, screen),), EVERYWHERE, sources=(key,))
    made = pixels(correspondence(tiny_network(VGG19).float(), pictures), pictures.styles)
    truth = inked(frame, screen)
    assert (made - truth).square().mean() < 0.6 * (truth.mean() - truth).square().mean()


def test_lines_by_hand_need_lines_in_every_painting():
    key, other = photo(2, 96, 112), photo(1, 64, 72)
    drawn = inked(key, by_hand(96, 112))
    assert len(Screen.of([drawn, drawn], [key, key]).waves) == 2
    assert not Screen.of([drawn, other.flip(1)], [key, other])


def test_lines_of_two_paintings_need_not_agree():
    """Check a frame whose parts are like two photographs; each has its own lines by hand."""
    keys, screen = [photo(seed, 96, 112) for seed in (2, 3)], by_hand(96, 112)
    styles = (inked(keys[0], screen), inked(keys[1], screen.flip(0, 1)))
    frame = torch.where(torch.arange(112) < 56, *keys)
    both = Region(sources=(StylePart(0), StylePart(1)))
    pictures = Inputs(frame, styles, (both,), sources=tuple(keys))
    made = pixels(correspondence(tiny_network(VGG19).float(), pictures), styles)
    truth = inked(frame, screen)
    assert (made - truth).square().mean() < 0.6 * (truth.mean() - truth).square().mean()


@pytest.mark.parametrize("size", [(64, 72), (96, 200), (300, 112)])
def test_lines_by_hand_are_continued_beyond_their_page(size):
    """Check content of another size: from row to row, phases grow as on the page."""
    key = photo(2, 96, 112)
    screen = Screen.of([inked(key, by_hand(96, 112))], [key])
    page, phases = (
        torch.view_as_complex(screen.phases(one, 1.0).view(*one.shape[2:], 2).contiguous())
        for one in (key, photo(0, *size))
    )
    assert torch.equal(phases[:96, :112], page[: size[0], : size[1]])
    grown = (phases[1:] * phases[:-1].conj()).angle()  # 2 pi / 6 to 2 pi / 3 for these lines
    assert 0.9 < grown.quantile(0.2) < grown.quantile(0.8) < 2.3


def striped(photograph):
    """Return a photograph of something with stripes, which are no texture of a page."""
    return photograph * (0.4 + 0.6 * turns(*photograph.shape[2:], 0.1, 0.17))


@pytest.mark.parametrize(
    ("painting", "photograph"),
    [
        (painted(striped(photo(0, 64, 64))), striped(photo(0, 64, 64))),
        (photo(0, 64, 64).flip(1), photo(0, 64, 64)),
        (picture(0, 64, 64), photo(0, 64, 64)),
        ((photo(0, 64, 64) * 3).round() / 3, photo(0, 64, 64)),
        (picture(0, 256, 256) + 0.06 * turns(256, 256, 0.25, 0), photo(0, 256, 256)),
        (torch.ones(1, 3, 64, 64), photo(0, 64, 64)),
        (torch.ones(1, 3, 1, 7), torch.ones(1, 3, 1, 7)),
    ],
    ids=["stripes of the thing", "colours", "noise", "flat", "faint", "empty", "one row"],
)
def test_what_is_no_screen(painting, photograph):
    assert not Screen.of([painting], [photograph])


@pytest.mark.parametrize(
    ("second", "distances"), [(0, (0.06, 0.04)), (1, (100.0, 0.1))], ids=["nearer", "far"]
)
def test_a_photograph_nearer_in_time_is_preferred(second, distances):
    sources, parts = (photo(), photo(second)), (StylePart(0), StylePart(1))
    pictures = Inputs(photo(), sources, (Region(sources=parts),), sources=sources)
    photographs = Photographs(tiny_network(VGG19).float(), pictures)
    assert photographs.match(photo()).places[0].eq(0).all()
    assert photographs.match(photo(), distances=distances).places[0].eq(1).all()


def test_a_photograph_tells_its_own_painting_not_another():
    network, wanted = tiny_network(VGG19).float(), painted(photo(0, 64, 64))
    assert agreement(network, photo(0, 64, 64), wanted) > FITS
    assert agreement(network, photo(1, 64, 64), wanted) < FITS
    assert agreement(network, photo(0, 64, 64), torch.full((1, 3, 64, 64), 0.5)) == 1


@pytest.mark.slow
def test_a_pair_that_does_not_fit_is_told(written, caplog):
    prepare(composed("train", *PAIR, "style_source=content.png"))
    assert "style.png seems to show something else" in caplog.text
    caplog.clear()
    prepare(composed("train", *PAIR, "style_source=photo.png"))
    assert not caplog.text


def test_a_pair_is_compared_where_the_network_computes(written, monkeypatch):
    """The dtype shows it: `Job.on_device` gives pictures the network's device, and float64."""
    seen = []
    monkeypatch.setattr("styletransfer.job.prepare.fits", lambda *given: seen.append(given) or True)
    prepare(composed("train", *PAIR, "style_source=photo.png", "precision=float64"))
    ((_, *pictures),) = seen
    assert [one.dtype for one in pictures] == [torch.float64] * 2


def test_pixels_are_matched_for_a_run_not_for_a_plan(written):
    config = composed("train", *PAIR, "style_source=photo.png")
    assert prepare(config).pictures.correspondence.size == (40, 48)
    assert prepare(config, enlarge=False).pictures.correspondence is None


@pytest.mark.usefixtures("signals")
def test_a_signal_that_others_hold_stops_the_search(written, monkeypatch):
    config = composed("train", *PAIR, "style_source=photo.png")
    monkeypatch.setattr(paired.PatchSearch, "begin", lambda *_: press())
    with pytest.raises(Stopped), stop_on_signals(), signals_held():
        prepare(config)


def test_the_search_has_a_bar(written, capsys):
    words = ("train", *PAIR, "style_source=photo.png", "steps=1")
    assert "matching" in call(capsys, *words)[1].err


def test_larger_pictures_are_copied_in_full_detail(small_search):
    key = photo(0, 80, 96)
    made = copied(matched(key, [key]), [painted(key)])
    torch.testing.assert_close(made, painted(key), rtol=0, atol=1e-3)


def test_a_region_of_a_larger_picture_ends_at_its_edge(small_search):
    left = (torch.arange(96) < 49).float().expand(1, 1, 80, 96)
    regions = (
        Region("left", left, (StylePart(1),)),
        Region("right", 1 - left, (StylePart(0),)),
    )
    found = matched(photo(0, 80, 96), [photo(0, 80, 96), photo(1, 80, 96)], regions)
    assert found.places[0].eq((torch.arange(96) < 49).long()).all()


@pytest.mark.slow
@pytest.mark.parametrize(("down", "right"), [(5, 7), (-5, -7)])
def test_every_match_of_a_larger_picture_lies_in_its_source(down, right, small_search, tiny_vgg):
    """Check a camera that has moved, so that matches lead out of the photograph."""
    whole = photo(0, 96, 112)
    key, frame = whole[..., 8:-8, 8:-8], whole[..., 8 + down : 88 + down, 8 + right : 104 + right]
    _, rows, columns = matched(frame, [key]).places
    assert 0 <= rows.min() <= rows.max() <= 79
    assert 0 <= columns.min() <= columns.max() <= 95
    made = stylize(frame, painted(key), style_source=key, size=96, precision="float32")
    assert made.image.shape == frame.shape


def test_a_slanted_edge_gets_no_steps_in_a_larger_picture():
    """Check a thing that has moved by 8 pixels; matches at half the size miss its edge by one."""
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    thing, ground = 0.5 + 0.5 * photo(1, 64, 72)[..., 8:], 0.5 * photo(0, 64, 64)
    is_thing = x > 30 + 0.4 * y
    key = torch.where(x > 38 + 0.4 * y, thing.roll(8, 3), ground)
    frame = torch.where(is_thing, thing, ground)
    rows, columns = y[:32, :32], x[:32, :32]
    moved = torch.where(is_thing.roll(2, 1)[::2, ::2], columns + 4, columns)
    known = Correspondence(torch.stack([0 * rows, rows, moved]), [(32, 32)])
    pictures = Inputs(frame, (key.flip(1),), sources=(key,))
    half = [[avg_pool2d(one, 2)] for one in (key, key.flip(1))]
    found = Refinement(pictures, *half).of(known, frame)
    wrong = (pixels(found, pictures.styles) - frame.flip(1)).abs().amax(1) > 0.1
    assert wrong[..., 2:54].sum() < 64


@pytest.mark.slow
def test_tiles_give_the_same_picture(written):
    given = {"style_source": "photo.png", "size": 48, "precision": "float64"}
    whole, tiled = (stylize("content.png", "style.png", tile=t, **given) for t in ("off", "16"))
    torch.testing.assert_close(tiled.image, whole.image, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_stopped_run_ends_in_the_same_bytes(written):
    words = ["train", *PAIR, "style_source=photo.png"]
    assert status_of(*words, "hydra.run.dir=whole") == 0
    assert status_of(*words, "hydra.run.dir=run", "stop_after=2") == 0
    assert status_of("train", "resume=run", "stop_after=0") == 0
    assert Path("run/pastiche.png").read_bytes() == Path("whole/pastiche.png").read_bytes()


@pytest.mark.slow
def test_the_preset_is_found_with_the_photograph():
    paired = composed("train", "experiment=paired", "style_source=a.png")
    assert composed("train", "style_source=a.png") == paired
    assert composed("train", "style_source=a.png", "experiment=classic").steps == 100
    assert composed("train", "style_source=null") == composed("train")


@pytest.mark.slow
def test_no_experiment_in_python_is_that_of_the_photograph(written):
    given = {"style_source": "photo.png", "experiment": None}
    stylize("content.png", "style.png", size=48, steps=1, **given).save("a.png")
    stylize("content.png", "style.png", size=48, steps=1, style_source="photo.png").save("b.png")
    assert Path("a.png").read_bytes() == Path("b.png").read_bytes()


@pytest.mark.slow
def test_the_recipe_names_the_photograph_and_all_settings(written):
    stylize("content.png", "style.png", style_source="photo.png", size=48).save("made.png")
    text = carried(Path("made.png"))
    assert "sha256 of style_source" in text
    _, name, *words = shlex.split(text["command"])
    assert composed(name, *words) == composed("train", *PAIR, "style_source=photo.png")


@pytest.mark.slow
def test_a_pair_is_painted_again_from_its_recipe(written, capsys):
    words = ["train", *PAIR, "style_source=photo.png", "steps=2", "output=made.png"]
    assert status_of(*words) == 0
    assert status_of("info", "made.png", "verify=true") == 0
    assert "the same bytes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["style_source=gone.png"], "gone.png does not exist"),
        (["style_source=short.png"], "another aspect ratio"),
        (["style_source=style.png"], "the same picture as style"),
        (["style_source=[photo.png,content.png]"], "names 2 photographs, and style 1 painting"),
        (["style_source=photo.png", "style_detail=photo.png"], "exclude each other"),
    ],
)
def test_a_pair_that_is_none_is_refused(written, capsys, words, problem):
    images.write("short.png", photo(3, 24, 48))
    assert problem in refusal(capsys, "train", *PAIR, *words)
