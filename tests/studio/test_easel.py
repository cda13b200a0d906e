"""The studio's easel in a real browser: what a hand does on the picture."""

import re

import pytest
from films.clips import grid, scene
from films.film_files import make
from PIL import ImageOps
from studio.studio_pages import dab
from studio.studios import bytes_of

from styletransfer.films.read import Film
from styletransfer.pictures.convert import to_image

pytestmark = pytest.mark.slow

COMMAND = "#details pre"
UPLOAD = "**/api/pictures?name=drawn*"
# The number of drawn pixels, on the page and in the picture that is saved.
DRAWN = """async () => {
  const { flushBrush, raster } = await import("/static/layers.js");
  await flushBrush();
  const count = () => raster("content_regions").bytes.filter(Boolean).length;
  const drawn = count();
  await raster("content_regions").load(`/api/pictures/${raster("content_regions").id}?side=2048`);
  return [drawn, count()];
}"""


def test_a_stroke_begun_while_another_is_saved_is_whole(address, visited):
    """Check that it is in the saved picture, and one step of undo, as each other stroke."""
    with visited(address, made=None) as page:
        page.click("#brush")
        page.click("[data-picker=style] .tile[title=mosaic] button")
        box = page.locator("#stage").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 4
        with page.expect_response(UPLOAD):
            dab(page)
            page.mouse.move(x - 150, y)
            page.mouse.down()
            page.mouse.move(x - 140, y)
        page.mouse.move(x + 150, y, steps=4)
        page.mouse.up()
        page.expect(COMMAND).to_contain_text("content_regions=")
        drawn, saved = page.evaluate(DRAWN)
        assert abs(drawn - saved) < drawn / 50  # the saved picture comes as a JPEG
        page.keyboard.press("Control+z")
        page.expect(COMMAND).to_contain_text("content_regions=")
        page.keyboard.press("Control+z")
        page.expect(COMMAND).not_to_contain_text("content_regions=")
        assert page.complaints == []


@pytest.mark.usefixtures("icons")
def test_only_styles_that_are_drawn_with_are_painted(page):
    """Check taps without a stroke, an undone one, a style that is removed, and too many."""
    chosen = page.locator("[data-picker=style] [aria-pressed=true]")

    def tap(name):
        page.click(f"[data-picker=style] .tile[data-id$={name}] button")

    page.click("#brush")
    tap("woodcut")
    tap("mosaic")
    page.expect("#brushes .dabs [aria-pressed=true]").to_have_text("mosaic")
    assert sorted(chosen.all_text_contents()) == ["mosaic", "oil"]
    page.locator("#stage").press(" ")
    page.expect(COMMAND).to_contain_text("region_styles={blue:1,red:2}")
    page.keyboard.press("Control+z")
    page.expect(COMMAND).not_to_contain_text("mosaic")
    page.expect("#brushes .dabs [aria-pressed=true]").to_have_text("mosaic")
    page.keyboard.press("Escape")
    page.expect("[data-picker=style] [aria-pressed=true]").to_have_text("oil")
    page.keyboard.press("Control+Shift+z")
    page.expect(COMMAND).to_contain_text("region_styles={blue:1,red:2}")
    page.click("#brush")
    tap("woodcut")
    page.locator("#stage").press(" ")
    page.expect(COMMAND).to_contain_text("gold:3")
    page.keyboard.press("Escape")
    tap("mosaic")  # takes it away; what is drawn in woodcut stays so
    page.expect("[data-picker=style] [aria-pressed=true]").to_have_count(2)
    page.expect(COMMAND).to_contain_text("gold:2")
    page.click("#brush")
    for name in ("lion", "mosaic", "oil", "fish"):
        tap(name)
        page.locator("#stage").press("ArrowRight")
        page.locator("#stage").press(" ")
    page.expect(COMMAND).to_contain_text("orchid:")
    saves = []
    page.route(UPLOAD, lambda route: saves.append(route))
    with page.expect_request(UPLOAD):
        tap("dance")
        page.locator("#stage").press("ArrowRight")
        page.locator("#stage").press(" ")
    page.expect("[data-control=style] .error").to_be_hidden()
    tap("harvesters")
    page.expect("[data-control=style] .error").to_contain_text("at most 6 styles")
    saves[0].continue_()
    page.expect(COMMAND).to_contain_text("aqua:")  # the stroke was saved, and the message stays
    page.expect("[data-control=style] .error").to_contain_text("at most 6 styles")


@pytest.mark.usefixtures("icons")
def test_styles_tapped_before_a_stroke_is_saved_keep_their_strokes(page):
    """Check two styles in a row, of which the first takes a region that is free again."""
    wall = page.locator("[data-picker=style] .tiles")

    def draw(name):
        page.click(f"[data-picker=style] .tile[data-id$={name}] button")
        page.locator("#stage").press("ArrowRight")
        page.locator("#stage").press(" ")

    page.click("#brush")
    draw("woodcut")
    draw("mosaic")
    page.click("text=Fill all")
    page.expect(COMMAND).to_contain_text("region_styles={gold:3}")
    page.keyboard.press("Escape")
    page.click("[data-picker=style] .tile[data-id$=woodcut] button")  # not drawn any more
    page.expect(COMMAND).to_contain_text("region_styles={gold:2}")
    page.click("#brush")
    saves = []
    page.route(UPLOAD, lambda route: route.continue_() if saves else saves.append(route))
    with page.expect_request(UPLOAD):
        draw("lion")
    draw("fish")
    page.keyboard.press("Escape")
    saves[0].continue_()
    page.expect(COMMAND).to_contain_text("region_styles={red:3,gold:2,green:4}")
    assert wall.evaluate("wall => wall.scrollTop") > 0  # as it was scrolled for the last tap


@pytest.mark.usefixtures("icons")
def test_strokes_that_are_done_again_keep_their_style(page):
    """Check a style that was tapped between undo and redo, and a stroke that Escape takes back."""
    stage, styles = page.locator("#stage"), "[data-picker=style] .tile[data-id$={}] button"
    page.click("#brush")
    page.click(styles.format("woodcut"))
    stage.press(" ")
    page.expect(COMMAND).to_contain_text("region_styles={blue:1,red:2}")
    page.keyboard.press("Control+z")
    page.expect(COMMAND).not_to_contain_text("woodcut")
    page.click(styles.format("mosaic"))
    page.keyboard.press("Control+Shift+z")
    page.expect(COMMAND).to_contain_text("woodcut")
    page.click(styles.format("mosaic"))
    for _ in range(2):
        stage.press("ArrowRight")
        stage.press(" ")
    page.expect(COMMAND).to_contain_text("mosaic")
    page.expect(COMMAND).to_contain_text("region_styles={blue:1,red:2,gold:3}")
    page.click(styles.format("lion"))
    box = stage.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 4)
    page.mouse.down()
    page.keyboard.press("Escape")
    page.mouse.up()
    page.click("#brush")
    page.click(styles.format("fish"))
    stage.press("ArrowLeft")
    stage.press(" ")
    page.expect(COMMAND).to_contain_text("green:4")
    page.expect(COMMAND).not_to_contain_text("lion")


def test_a_stroke_that_cannot_be_saved_is_not_left_out(address, visited):
    """Check that nothing is painted without it, and that it is saved at the next try."""
    with visited(address, made=None) as page:
        for name in ("mosaic", "woodcut"):
            page.locator(f"[data-picker=style] .tile[title={name}] input").fill("100")
        page.expect(COMMAND).to_contain_text("woodcut")
        page.route(UPLOAD, lambda route: route.fulfill(status=500, json={"error": "no room"}))
        page.click("#brush")
        page.click("[data-picker=style] .tile[title=mosaic] button")
        dab(page)
        page.expect("body").to_contain_text("no room")
        page.click("#keep")
        page.expect("#keep").not_to_have_attribute("aria-busy", "true")
        page.expect("body").to_contain_text("no room")
        page.expect("body").to_contain_text("Nothing painted yet")
        page.locator("[data-picker=style] .tile[title=oil] input").fill("0")
        page.unroute(UPLOAD)
        page.click("#keep")
        page.expect(COMMAND).to_contain_text("region_styles={blue:1,red:1}")  # mosaic is the first
        page.expect("body").not_to_contain_text("Nothing painted yet")


def test_the_photograph_is_seen_while_the_picture_is_held(page):
    """Check a pointer that rests and a key, beside a comparison, and not while the brush draws."""
    photo = page.locator("#before")
    page.enter("size", "96")
    page.click("#keep")
    page.expect("#status").to_have_text("Sketch, kept")
    stage = page.locator("#stage")
    for comparing in (False, True):
        stage.hover(position={"x": 60, "y": 200})  # left of the divider
        page.mouse.down()
        page.expect("#before").to_have_css("clip-path", "none")
        page.expect("#before").to_be_visible()
        page.expect("#divider").to_be_hidden()
        page.expect("#original").to_have_attribute("src", re.compile("/content"))
        page.mouse.up()
        assert photo.is_visible() == comparing
        stage.focus()
        page.keyboard.down("o")
        page.expect("#before").to_have_css("clip-path", "none")
        page.keyboard.up("o")
        page.click("#compare")
    page.click("#brush")
    page.mouse.move(400, 400)
    page.mouse.down()
    page.keyboard.press("o")
    page.mouse.up()
    page.expect(COMMAND).to_contain_text("protect=")


def test_regions_are_found_by_the_run_or_drawn(address, visited):
    """Check that shares and another photograph leave them, and that a stroke replaces them."""
    with visited(address, made=None) as page:
        page.unfold()
        page.select_option("#control-content_regions", label="figure and ground apart")
        page.expect(COMMAND).to_contain_text("content_regions=auto")
        page.locator("[data-picker=style] .tile[title=mosaic] input").fill("40")
        page.expect(COMMAND).to_contain_text("style_weights=[1,0.4]")
        page.click("[data-picker=content] .tile[title=rocket]")
        page.expect(COMMAND).to_contain_text("rocket")
        page.expect(COMMAND).to_contain_text("content_regions=auto")
        page.reload()
        page.expect("#control-content_regions").to_have_value("auto")
        page.click("#brush")
        page.locator("#stage").press(" ")
        page.expect(COMMAND).to_contain_text("content_regions=/")
        page.expect("#control-content_regions").to_have_value("")
        page.keyboard.press("Control+z")
        page.expect(COMMAND).to_contain_text("content_regions=auto")
        page.expect(COMMAND).to_contain_text("style_weights=[1,0.4]")
        assert page.complaints == []


def test_the_frame_that_no_painted_one_fits_is_marked(address, visited, tmp_path):
    """Check a film whose camera stands still, but at the end another scene comes in."""
    calm = scene(*grid()).float()
    new = calm.clone()
    new[..., 8:20, 10:30] = 1 - calm[..., 8:20, 10:30]
    make(tmp_path / "walk.mp4", [calm] * 3 + [new] * 7)
    with Film(tmp_path / "walk.mp4") as film:
        first, last = (to_image(film.frame(number).image) for number in ("0", "9"))
        time = film.frame("8").time
    with visited(address, made=None) as page:
        page.set_input_files("[aria-label='File for Photograph']", tmp_path / "walk.mp4")
        page.expect(COMMAND).to_contain_text("styletransfer apply")
        page.click(".own > summary")
        page.drop(".film", **{"walk 0s": bytes_of(ImageOps.invert(first))})
        page.expect(COMMAND).to_contain_text("styletransfer film")
        page.enter("size", "64")
        page.expect(".film .next").to_have_count(0)
        page.click("#go")
        page.expect("#status").to_contain_text("Finished after 10 frames")
        page.expect(".film .tile >> nth=1").to_have_class("tile next")
        page.expect(".film .next img").to_have_js_property("naturalWidth", first.width)
        page.click(".film >> text=Fits worst")
        marked = page.locator(".film .next .caption").text_content()
        assert float(marked.split()[0]) >= time
        page.expect(".film a").to_have_attribute("download", f"walk {marked.split()[0]}s.png")
        page.drop(".film", last=bytes_of(ImageOps.invert(last)))
        page.expect(".film .next").to_have_count(0)
        page.click("#undo")
        page.expect(".film .next").to_have_count(1)
        assert page.complaints == []
