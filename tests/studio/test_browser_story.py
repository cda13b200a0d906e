"""The whole story in a real browser, on a phone's and on a laptop's width."""

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from studio_pages import Visit, needs_chromium, png, served, visit, visited

pytestmark = [pytest.mark.slow, needs_chromium]

BOXES = """['.stage', '.actions', '#go'].map(
  (one) => JSON.stringify(document.querySelector(one).getBoundingClientRect())).join()"""


def dab(page: Visit) -> None:
    """Set the brush down in the middle of the picture: a finger on a phone, a mouse elsewhere."""
    box = page.locator("#stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if page.viewport_size["width"] < 500:
        page.touchscreen.tap(x, y)
        return
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 10, steps=3)
    page.mouse.up()


@pytest.mark.parametrize("width", [390, 1280])
def test_story(width: int, tmp_path: Path) -> None:
    with served(tmp_path) as address, visited(address, width) as page:
        page.drop("#stage", harbour=png(96, 64, "navy"), rust=png(60, 60, "sienna"))
        page.expect("[data-picker=content] .chosen").to_contain_text("harbour")
        page.expect("[data-picker=style] .chosen").to_contain_text("rust")
        page.paint_tiny()
        page.expect("#title").to_contain_text("harbour")

        page.locator("[data-control='objective.content_weight'] input[type=range]").focus()
        page.keyboard.press("ArrowRight")
        page.expect("#moments").to_contain_text("before Keep the photograph")

        page.click("#brush")
        page.expect("#overlay").to_be_visible()
        dab(page)
        page.expect("#moments").to_contain_text("regions")
        page.keyboard.press("Escape")
        page.expect("#overlay").to_be_hidden()

        page.click("#go")
        page.expect("#go").to_have_text("Go on")
        page.click("#go")
        page.expect("#go").to_have_text("Pause")
        page.click("#stop")
        page.expect("#status").to_contain_text("Stopped")
        with page.expect_download() as download:
            page.click("#result >> text=PNG")
        data = Path(download.value.path()).read_bytes()
        assert Image.open(BytesIO(data)).size == (96, 64)

        page.reload()
        page.expect("#strip .thumb").to_have_count(1)
        page.expect("[data-picker=content] .chosen").to_contain_text("harbour")
        page.click("#strip .thumb")
        page.expect("#title").to_contain_text("harbour")
        page.expect("#result").to_contain_text("96 \u00d7 64 pixels")
        assert page.complaints == []


def test_nothing_moves_while_it_is_painted(tmp_path: Path) -> None:
    with served(tmp_path) as address, visited(address) as page:
        page.ask_for_tiny()
        before = page.evaluate(BOXES)
        page.paint()
        assert page.evaluate(BOXES) == before
        page.expect("#terms button").not_to_have_count(0)
        assert page.evaluate(BOXES) == before
        page.click("#stop")
        page.expect("#status").to_contain_text("after")


def test_moment_can_be_gone_back_to(tmp_path: Path) -> None:
    with served(tmp_path) as address, visited(address) as page:
        page.paint_tiny()
        page.enter("objective.content_weight", "2")
        page.expect("#moments").to_contain_text("before Keep the photograph")
        page.locator("#moments li", has_text="before Keep").locator("button").click()
        page.expect("[id='control-objective.content_weight']").to_have_value("0.25")
        page.click("#stop")
        page.expect("#status").to_contain_text("after")
        assert page.complaints == []


def test_finished_picture_is_painted_on(tmp_path: Path) -> None:
    with served(tmp_path) as address, visited(address) as page:
        page.enter("size", "96")
        page.click("#more > summary")
        page.click("[data-group=steps] > summary")
        page.enter("steps", "4")
        page.click("#go")
        page.expect("#status").to_contain_text("Finished after 4 steps")
        page.enter("objective.content_weight", "2")
        page.click("#further")
        page.expect("#moments").to_contain_text("before Keep the photograph")
        page.expect("#status").to_contain_text("Finished")
        page.expect("#status").not_to_contain_text("after 4 steps")
        assert page.complaints == []


def test_run_outlives_its_tab_and_two_tabs_show_the_same(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        with visited(address) as page:
            page.paint_tiny()
        with visited(address) as one:
            other = visit(one.context, address)
            for page in (one, other):
                page.expect("#go").to_have_text("Pause")
                page.expect("#status").to_contain_text("step ")
            one.enter("objective.content_weight", "2")
            other.expect("[id='control-objective.content_weight']").to_have_value("2")
            other.click("#stop")
            one.expect("#status").to_contain_text("Stopped")
