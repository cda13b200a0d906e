"""The sketch on the studio's page in a real browser: what it shows, and what is said beside it."""

import re

import pytest
from studio.studio_pages import dab, png

pytestmark = pytest.mark.slow

STYLE = "[data-picker=style] .tile"
NOT_YET = "Photograph, not sketched yet"


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
    fresh.unfold("steps")
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


def test_pixels_stand_beside_the_buttons_and_the_result(page):
    page.expect("#pixels").to_have_text("512 \u00d7 341 pixels; the photograph has 600 \u00d7 400")
    page.drop("#stage", harbour=png(1500, 1000, "navy"))
    told = "512 \u00d7 341 pixels; the photograph has 1500 \u00d7 1000"
    page.expect("#pixels").to_have_text(told)
    page.enter("size", "96")
    page.expect("#pixels").to_have_text("96 \u00d7 64 pixels; the photograph has 1500 \u00d7 1000")
    page.click("#keep")
    page.expect("#status").to_have_text("Sketch, kept")
    page.expect("#pixels").to_have_text("96 \u00d7 64 pixels; the photograph has 1500 \u00d7 1000")
    page.enter("size", "192")  # of the next picture
    page.expect("#save").to_be_visible()
    page.expect("#pixels").to_have_text("96 \u00d7 64 pixels; Paint makes 192 \u00d7 128")


@pytest.mark.parametrize("layer", ["Styles", "Protect"])
def test_a_sketch_says_that_it_leaves_out_what_is_drawn(page, layer):
    page.enter("size", "96")
    page.click("#brush")
    page.click(f"#brushes >> text={layer}")
    dab(page)
    page.expect("#status").to_have_text("Sketch without what you drew: only Paint uses it")
    page.click("#keep")
    page.expect("#status").to_have_text("Sketch, kept without what was drawn")
    page.click("#undo")
    page.expect("#status").to_have_text("Sketch")


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
