"""The pages of `explain` and of `gallery` in a real browser; skipped where there is no Chromium."""

import pytest
from explained import studied
from galleries import make_sweep
from helpers import MODES
from studio_pages import CHROMIUM, needs_chromium, playwright

from styletransfer.commands.explain.drawing import render
from styletransfer.commands.gallery.command import make_gallery
from styletransfer.settings import GalleryConfig

pytestmark = [pytest.mark.slow, needs_chromium]
WIDER = "document.documentElement.scrollWidth - innerWidth"
CLIPPED = """() => [...document.querySelectorAll("svg text")].filter((text) =>
  text.getBBox().x + text.getBBox().width > text.ownerSVGElement.viewBox.baseVal.width).length"""


@pytest.fixture
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_page_of_explain_fits_a_phone(browser, tmp_path):
    path = tmp_path / "page.html"
    studies = [studied(mode) for mode in MODES]
    path.write_text(render("page.html", studies=studies, setting="tiny"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(path.as_uri())
    assert page.evaluate(WIDER) <= 0
    assert page.evaluate(CLIPPED) == 0
    for drawing in page.locator("svg").all():  # each scrolls in a box of its own
        assert drawing.bounding_box()["width"] == float(drawing.get_attribute("width"))


@pytest.mark.parametrize("width", [390, 1280])
def test_gallery_fits_and_loads_nothing(browser, width, tmp_path):
    make_sweep(tmp_path)
    _, path = make_gallery(GalleryConfig(str(tmp_path)))
    page, events = browser.new_page(viewport={"width": width, "height": 900}), []
    page.on("console", lambda message: events.append(message.text))
    page.on("request", lambda request: events.append(request.url))
    page.goto(path.as_uri())
    assert page.evaluate(WIDER) <= 0
    widths = page.eval_on_selector_all("img", "all => all.map((image) => image.naturalWidth)")
    assert (len(widths), all(widths)) == (6, True)
    assert [event for event in events if not event.startswith("data:")] == [path.as_uri()]
