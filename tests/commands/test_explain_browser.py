"""The page in a real browser, on a phone's width; skipped where no Chromium is installed."""

import shutil

import pytest
from explained import studied
from helpers import MODES

from styletransfer.commands.explain.command import draw_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the page with"),
]

LOOK = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const drawn = all("section:not([hidden]) .panel > svg");
  const right = (text) => text.getBBox().x + text.getBBox().width;
  return {
    shown: all("section.mode").filter((one) => !one.hidden).map((one) => one.id),
    current: all(".modes [aria-current=true]").map((one) => one.hash),
    overflow: document.documentElement.scrollWidth - innerWidth,
    scales: drawn.map((one) => one.getBoundingClientRect().width / one.viewBox.baseVal.width),
    clipped: drawn.flatMap((one) => [...one.querySelectorAll("text")]
      .filter((text) => right(text) > one.viewBox.baseVal.width)).length,
  };
}"""


def test_page_fits_a_phone_and_shows_one_mode_at_a_time(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    path = tmp_path / "page.html"
    path.write_text(draw_page([studied(mode) for mode in MODES], "tiny"), encoding="utf-8")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 900})
        page.goto(path.as_uri())
        for mode in ["", *reversed(MODES)]:
            if mode:
                page.click(f".modes a[href='#{mode}']")
                page.wait_for_function(f"!document.getElementById('{mode}').hidden")
            shown = mode or MODES[0]
            seen = page.evaluate(LOOK)
            assert seen["shown"] == [shown]
            assert seen["current"] == [f"#{shown}"]
            assert seen["overflow"] <= 0
            # The map keeps its natural size and scrolls in its own box.
            assert seen["scales"] == [pytest.approx(1)]
            assert seen["clipped"] == 0
            # Each box is a button that unfolds its nodes, and folds them again.
            box = page.get_by_role("button", name="unfold block 1").locator("visible=true")
            group = page.locator(f"[id='{shown}.block_1']")
            for keys in ("Enter", " "):
                box.press(keys)
                assert (group.get_attribute("open") is not None) is (keys == "Enter")
        browser.close()
