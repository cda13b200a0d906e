"""The pages of `explain` and of `gallery` in a real browser; skipped where there is no Chromium."""

import pytest
from explained import studied
from galleries import make_sweep
from helpers import MODES
from studio_pages import CHROMIUM, needs_chromium, playwright

from styletransfer.commands.explain.command import draw_page
from styletransfer.commands.gallery.command import make_gallery
from styletransfer.settings import GalleryConfig

pytestmark = [pytest.mark.slow, needs_chromium]
WIDER = "document.documentElement.scrollWidth - innerWidth"
LOOK = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const drawn = all("section:not([hidden]) .panel > svg");
  const right = (text) => text.getBBox().x + text.getBBox().width;
  return {
    shown: all("section.mode").filter((one) => !one.hidden).map((one) => one.id),
    current: all(".modes [aria-current=true]").map((one) => one.hash),
    scales: drawn.map((one) => one.getBoundingClientRect().width / one.viewBox.baseVal.width),
    clipped: drawn.flatMap((one) => [...one.querySelectorAll("text")]
      .filter((text) => right(text) > one.viewBox.baseVal.width)).length,
  };
}"""


@pytest.fixture
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_page_fits_a_phone_and_shows_one_mode_at_a_time(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(draw_page([studied(mode) for mode in MODES], "tiny"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(path.as_uri())
    for mode in ["", *reversed(MODES)]:
        if mode:
            page.click(f".modes a[href='#{mode}']")
            page.wait_for_function(f"!document.getElementById('{mode}').hidden")
        shown = mode or MODES[0]
        assert page.evaluate(WIDER) <= 0
        # The map keeps its natural size and scrolls in its own box.
        expected = {"shown": [shown], "current": [f"#{shown}"], "clipped": 0}
        assert page.evaluate(LOOK) == expected | {"scales": [pytest.approx(1)]}
        # Each box is a button that unfolds its nodes, and folds them again.
        box = page.get_by_role("button", name="unfold block 1").locator("visible=true")
        group = page.locator(f"[id='{shown}.block_1']")
        for keys in ("Enter", " "):
            box.press(keys)
            assert (group.get_attribute("open") is not None) is (keys == "Enter")


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
