"""The pages of `explain` and of `gallery` in a real browser; skipped where there is no Chromium."""

import json
from pathlib import Path

import pytest
from explained import studied
from galleries import make_sweep
from helpers import MODES
from PIL import Image
from studio_pages import CHROMIUM, needs_chromium, playwright

from styletransfer.commands.explain.command import draw_page
from styletransfer.commands.gallery.cards import LARGEST, make_preview
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
def test_gallery_sorts_enlarges_and_fits(browser, width, tmp_path):
    make_sweep(tmp_path)
    _, path = make_gallery(GalleryConfig(str(tmp_path)))
    page, told = browser.new_page(viewport={"width": width, "height": 900}), []
    page.on("console", lambda said: told.append(said.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda asked: told.append(asked.url))
    page.goto(path.as_uri())
    assert page.evaluate(WIDER) <= 0

    def labels():
        return [one.get_attribute("alt") for one in page.locator(".zoom img").all()]

    swept = labels()
    page.select_option("#order", label="by time")
    assert labels() == [
        f"style {style}.jpg, objective.content_weight {weight}"
        for style in ("ink", "oil")
        for weight in ("2.0", "0.5", "10.0")
    ]
    assert (page.is_visible("#sorted"), page.is_visible("#swept")) == (True, False)
    page.select_option("#order", label="as swept")
    assert labels() == swept
    assert page.locator("td .card").count() == 6
    page.locator(".zoom").first.click()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#zoom[open] img").get_attribute("alt") == swept[-1]
    page.keyboard.press("Escape")
    for unfold in page.locator("details > summary").all():
        unfold.click()
    assert page.evaluate(WIDER) <= 0  # with every card unfolded, too
    assert all(line.is_visible() for line in page.locator("polyline").all())
    assert page.locator(".copy:visible").count() == 6
    widths = page.eval_on_selector_all("img[src]", "all => all.map((one) => one.naturalWidth)")
    assert all(widths)
    assert [said for said in told if not said.startswith("data:")] == [path.as_uri()]


def test_a_blind_page_counts_what_is_preferred(browser, tmp_path):
    """Whatever side it is on: by a click, and by the arrow keys."""
    make_sweep(tmp_path)
    for number in range(6):  # the first style is red, the second one is blue
        Image.new("RGB", (40, 30), "red" if number < 3 else "blue").save(
            tmp_path / str(number) / "pastiche.png"
        )
    _, path = make_gallery(GalleryConfig(str(tmp_path), blind="style"))
    page = browser.new_page()
    page.goto(path.as_uri())
    reds = {"images": "#pair img", "red": make_preview(tmp_path / "0/pastiche.png", LARGEST).uri}
    is_red = (
        "({images, red}) => [...document.querySelectorAll(images)].map((one) => one.src === red)"
    )
    assert page.text_content("#said") == "1 of 3"
    for wanted, press in ((True, True), (True, False), (False, True)):
        sides = page.evaluate(is_red, reds)
        assert sorted(sides) == [False, True]
        side = sides.index(wanted)
        if press:
            page.keyboard.press(("ArrowLeft", "ArrowRight")[side])
        else:
            page.locator("#pair button").nth(side).click()
    said = page.text_content("#said")
    assert sorted(said.split("; ")) == [
        "ink.jpg: 1 of 3 (6 to 79 %)",
        "oil.jpg: 2 of 3 (21 to 94 %)",
    ]
    with page.expect_download() as kept:
        page.click("#file")
    made = json.loads(Path(kept.value.path()).read_text())
    assert made["counts"]["oil.jpg"] == {"preferred": 2, "of": 3, "percent": [21, 94]}
    assert len(made["answers"]) == 3
    page.keyboard.press("ArrowLeft")  # nothing is left to choose from
    assert page.text_content("#said") == said
