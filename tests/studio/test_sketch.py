"""The sketch on the studio's page in a real browser: what it shows, and what is said beside it."""

import re
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from studio.studio_pages import png

from styletransfer.settings import ASSETS

pytestmark = pytest.mark.slow

CANVAS = "document.getElementById('canvas').toDataURL()"
# The address of the sketch of settings, as large as the page shows it at size=160.
LOOK = """(settings) => import("/static/store.js").then(({ sketchUrl, state }) =>
  sketchUrl({ ...state.next, content: "content-coffee", style_weights: [], ...settings }, 2048))"""
# The mean difference in grey levels between a picture and the canvas, around a place.
SHOWN = """async ([url, u, v, share = 0.05]) => {
  const image = Object.assign(new Image(), { src: url });
  await image.decode();
  const canvas = document.getElementById("canvas");
  const { width, height } = canvas;
  const [side, other] = [width * share, height * share];
  const box = [u * width - side / 2, v * height - other / 2, side, other].map(Math.round);
  const copy = Object.assign(new OffscreenCanvas(width, height).getContext("2d"));
  const read = (picture) => {
    copy.drawImage(picture, 0, 0, width, height);
    return copy.getImageData(...box).data;
  };
  const [one, two] = [image, canvas].map(read);
  return one.reduce((sum, level, at) => sum + Math.abs(level - two[at]), 0) / one.length;
}"""
STYLE = "[data-picker=style] .tile"
NOT_YET = "Photograph, not sketched yet"


def middle(page):
    """Return the place of the middle of the stage."""
    box = page.locator("#stage").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_failed_sketch_comes_with_the_connection(fresh):
    """Check also that the message that nobody answers goes by itself."""
    fresh.expect("#status").to_have_text("Sketch")
    fresh.context.set_offline(True)
    fresh.click(f"{STYLE}[title=mosaic] button")
    fresh.expect("#status").to_have_text(re.compile(f"{NOT_YET}|Not connected"))
    fresh.expect("#messages").to_contain_text("does not answer")
    with fresh.expect_response(re.compile("look.*mosaic.*side=2048")):
        fresh.context.set_offline(False)
    fresh.expect("#status").to_have_text("Sketch")
    fresh.expect("#messages").to_have_text("")
    fresh.expect("#details pre").to_contain_text("mosaic")


def test_a_failed_sketch_comes_after_a_change(fresh):
    fresh.route(re.compile("look.*woodcut"), lambda route: route.fulfill(status=422, json={}))
    fresh.click(f"{STYLE}[title=woodcut] button")
    fresh.expect("#status").to_have_text(NOT_YET)
    fresh.unroute_all()
    fresh.unfold()
    with fresh.expect_response(re.compile("look.*woodcut.*side=2048")):
        fresh.enter("steps", "33")
    fresh.expect("#status").to_have_text("Sketch")


def test_looks_never_show_the_photograph_before(address, visited):
    with visited(address, made="trial=1") as page:
        looks = page.locator("#looks img")
        page.expect("#looks img >> nth=0").to_have_attribute("src", re.compile("coffee.*trial"))
        page.route(re.compile("trial=1"), lambda route: None)
        page.click("[data-picker=content] .tile[title=rocket] button")
        page.expect("#details pre").to_contain_text("rocket")
        shown = looks.evaluate_all("(all) => all.map((one) => one.getAttribute('src'))")
        assert shown == ["/api/pictures/content-rocket?side=320"] * 4


def test_pixels_and_time_stand_beside_the_buttons(page):
    """The time is missing until the painter has timed a step."""

    def told(made, rest):
        page.expect("#pixels").to_have_text(re.compile(f"^{made} pixels(, about .*s)?; {rest} *$"))

    told("512 \u00d7 341", "photograph: 600 \u00d7 400")
    page.drop("#stage", harbour=png(1500, 1000, "navy"))
    told("512 \u00d7 341", "photograph: 1500 \u00d7 1000")
    page.enter("size", "96")
    told("96 \u00d7 64", "photograph: 1500 \u00d7 1000")
    page.click("#keep")
    page.expect("#status").to_have_text("Sketch, kept")
    page.expect("#pixels").to_have_text("96 \u00d7 64 pixels; photograph: 1500 \u00d7 1000")
    page.enter("size", "192")  # of the next picture
    page.expect("#save").to_be_visible()
    page.expect("#pixels").to_contain_text("96 \u00d7 64 pixels; Paint makes 192 \u00d7 128")


def test_the_sketch_shows_what_the_hand_draws(page):
    """A style under the brush, then the photograph, without a request; and it is kept like this."""
    asked = []
    page.enter("size", "160")
    page.click("#brush")
    with page.expect_response(re.compile("look.*%5B%22style-mosaic%22%5D.*side=2048")):
        page.click(f"{STYLE}[title=mosaic] button")
    page.expect("#brushes .dabs button").to_have_text(["oil", "mosaic", "photograph"])
    page.expect("#brushes .dabs [aria-pressed=true]").to_have_text("mosaic")
    page.expect("#stage").not_to_have_attribute("aria-busy", "true")
    oil, mosaic = (page.evaluate(LOOK, {"style": [f"style-{name}"]}) for name in ("oil", "mosaic"))
    photo = "/api/pictures/content-coffee?side=2048"
    page.on("request", lambda request: "/api/look" in request.url and asked.append(request.url))
    page.click(f"{STYLE}[title=oil] button")
    page.expect("#brushes .dabs [aria-pressed=true]").to_have_text("oil")
    page.click("#brushes >> text=mosaic")
    x, y = middle(page)
    page.mouse.move(x - 60, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=4)
    assert page.evaluate(SHOWN, [mosaic, 0.5, 0.5]) < 6  # before the button is released
    page.mouse.up()
    assert page.evaluate(SHOWN, [mosaic, 0.5, 0.5]) < 6 < page.evaluate(SHOWN, [photo, 0.5, 0.5])
    page.click("#brushes >> text=photograph")
    page.mouse.move(x, y)
    page.mouse.down()
    assert page.evaluate(SHOWN, [photo, 0.5, 0.5]) < 6
    page.mouse.up()
    page.expect("#details pre").to_contain_text("protect=")
    page.expect("#status").to_have_text("Sketch")
    for place in [(0.1, 0.9), (0.9, 0.1)]:
        assert page.evaluate(SHOWN, [oil, *place]) < 6 < page.evaluate(SHOWN, [mosaic, *place])
    assert asked == []
    before = page.evaluate(CANVAS)
    page.click("#keep")
    page.expect("#status").to_have_text("Sketch, kept")
    for word in ("styletransfer apply", "content_regions=", "region_styles=", "protect="):
        page.expect("#details pre").to_contain_text(word)
    assert page.evaluate(SHOWN, [before, 0.5, 0.5, 1]) < 3  # of the whole picture
    page.go_back()
    page.expect("#status").to_have_text("Sketch")
    page.keyboard.press("Control+z")
    page.expect("#details pre").not_to_contain_text("protect=")
    assert page.evaluate(SHOWN, [mosaic, 0.5, 0.5]) < 6


def test_the_wall_is_one_stop_of_tab_and_walked_by_arrows(page):
    oil = page.locator(f"{STYLE}[title=oil] button")
    oil.focus()
    for key, title in [("ArrowRight", "pointillism"), ("ArrowLeft", "oil"), ("ArrowDown", None)]:
        page.keyboard.press(key)
        if title:
            page.expect(f"{STYLE}[title={title}] button").to_be_focused()
    below = "document.activeElement.closest('.tile').getBoundingClientRect()"
    box = page.locator(f"{STYLE}[title=oil]").bounding_box()
    found = page.evaluate(f"(({{ x, y }}) => ({{ x, y }}))({below})")
    assert (found["x"], found["y"] > box["y"]) == (box["x"], True)
    page.keyboard.press("Enter")
    page.expect(f"{STYLE}[title=oil] [aria-pressed=true]").to_have_count(0)
    page.expect("[data-picker=style] :focus").to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Tab")
    page.expect("[data-picker=style] input[type=range]:focus").to_have_count(1)
    page.keyboard.press("Tab")
    page.expect("[data-picker=style] :focus").to_have_count(0)


def test_a_result_is_faded_saved_as_seen_and_enlarged(page):
    """Check that Save, every format, and the stage show the same mixture with the photograph."""
    page.enter("size", "96")
    page.expect("#opacity").to_have_count(0)
    page.click("#keep")
    page.expect("#status").to_have_text("Sketch, kept")
    with page.expect_download() as whole:
        page.click("#save")
    page.locator("#opacity").press("Home")
    photo = "/api/pictures/content-coffee?side=2048"
    page.wait_for_function(f"async (ask) => (await ({SHOWN})(ask)) < 3", arg=[photo, 0.5, 0.5, 1])
    page.locator("#opacity").fill("40")
    with page.expect_download() as faded:
        page.click("#save")
    seen = page.evaluate(CANVAS)
    pastiche, mixed, stage = (
        np.asarray(Image.open(file).convert("RGB"), dtype=float)
        for file in (whole.value.path(), faded.value.path(), BytesIO(b64decode(seen[22:])))
    )
    with Image.open(ASSETS / "content" / "coffee.jpg") as content:
        below = np.asarray(content.resize((96, 64), Image.Resampling.BICUBIC), dtype=float)
    assert abs(mixed - (0.4 * pastiche + 0.6 * below)).mean() < 2
    assert abs(stage - mixed).mean() < 5 < 10 < abs(pastiche - mixed).mean()  # the stage has JPEGs
    page.expect("#result a >> nth=3").to_have_attribute("href", re.compile("tiff&opacity=0.4"))
    page.click("#larger")
    page.expect("#pixels").to_contain_text("192 \u00d7 128 pixels")
    page.expect("#status").to_have_text("Sketch, kept")
    page.expect("#opacity").to_have_value("100")
    page.expect("#larger").to_have_text("Larger: 384 \u00d7 256")
    page.click("#undo")
    page.expect("[id=control-size]").to_have_value("96")


WIDTHS = """(canvas) => {
  const { get, set } = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
  const log = (width) => (window.widths ??= []).push(width);
  Object.defineProperty(canvas, "width",
    { get, set(width) { log(width); set.call(canvas, width); } });
}"""


def test_a_sharp_sketch_stays_until_a_preview_is_sharper(page):
    """Coarser scales are not shown over it; a changed setting is, at once."""
    page.enter("size", "192")
    page.unfold()
    page.enter("scales", "3")
    page.enter("steps", "9")
    page.expect("#canvas").to_have_js_property("width", 192)
    page.locator("#canvas").evaluate(WIDTHS)
    page.click("#go")
    page.expect("#status").to_contain_text("Finished after 9 steps")
    assert set(page.evaluate("window.widths")) == {192}
