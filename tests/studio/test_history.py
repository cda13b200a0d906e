"""The history of the studio's page in a real browser: undo and redo of all that a person does."""

from random import Random

import pytest
from studio.studio_pages import dab, png

pytestmark = pytest.mark.slow

COMMAND = "#details pre"
OVERLAY = "document.getElementById('overlay').toDataURL()"
PAINT = "#brushes .dabs button"


def test_undo_takes_a_stroke_wherever_the_focus_is(address, visited):
    """Check that it is the page's undo, not the browser's, which would put the old size back."""
    with visited(address, made=None) as page:
        page.enter("size", "96")
        page.click("#brush")
        page.expect("#undo").to_have_text("Undo")
        clear = page.evaluate(OVERLAY)
        for focus in (PAINT, "[id=control-size]", "#brushes >> text=Erase", "#compare"):
            page.click(PAINT)
            dab(page)
            page.expect(COMMAND).to_contain_text("protect=")
            drawn = page.evaluate(OVERLAY)
            page.expect("#undo").to_have_text("Undo stroke")
            page.click(focus)
            page.keyboard.press("Control+z")
            page.expect(COMMAND).not_to_contain_text("protect=")
            assert page.evaluate(OVERLAY) == clear
            page.expect("[id=control-size]").to_have_value("96")
            page.keyboard.press("Control+Shift+Z")
            page.expect(COMMAND).to_contain_text("protect=")
            assert page.evaluate(OVERLAY) == drawn
            page.keyboard.press("Meta+z")
            page.expect(COMMAND).not_to_contain_text("protect=")
        page.keyboard.press("Control+z")
        page.expect("[id=control-size]").to_have_value("512")
        assert page.complaints == []


def test_one_button_undoes_each_kind_of_change(address, visited):
    """Check a choice, a slider, a text, an upload, a look, a fill and a reset, in their order."""
    with visited(address, 390, made=None) as page:
        page.expect("#undo").to_have_attribute("aria-disabled", "true")
        seen = []

        def state():
            panel = page.locator("[aria-pressed=true] .caption").all_text_contents()
            numbers = page.locator(".slide input").evaluate_all("all => all.map((o) => o.value)")
            colour = page.locator("#control-color").input_value()
            return panel, numbers, colour, page.locator(COMMAND).text_content()

        def act(text, action):
            seen.append(state())
            action()
            page.expect(COMMAND).to_contain_text(text)

        slider = page.locator("[data-control=style_scale] input[type=range]")
        add = "[data-picker=style]"
        act("mosaic", lambda: page.click(f"{add} .tile[title=mosaic] button"))
        act("style_scale=", lambda: slider.press("End"))
        act("size=96", lambda: page.enter("size", "96"))
        act("color=style", lambda: page.locator("#control-color").press("Home"))
        act("pictures/", lambda: page.drop(add, rust=png(60, 60, "sienna")))
        act("match_weight=2", lambda: page.click("#looks >> text=bold"))
        act("coffee", lambda: page.click("#reset-all"))
        page.expect("#looks [aria-pressed=true]").to_have_text("painted")
        page.expect(COMMAND).not_to_contain_text("match_weight")  # the server has answered
        last = state()
        for wanted in reversed(seen):
            page.click("#undo")
            page.expect(COMMAND).to_have_text(wanted[-1])
            assert state() == wanted
        page.expect("#undo").to_have_attribute("aria-disabled", "true")
        for wanted in [*seen[1:], last]:
            page.click("#redo")
            page.expect(COMMAND).to_have_text(wanted[-1])
            assert state() == wanted
        page.expect("#redo").to_be_hidden()  # on a phone


@pytest.mark.usefixtures("icons")
def test_a_drag_is_one_step_and_typing_has_its_own_undo(page):
    slider = page.locator("[data-control=style_scale] input[type=range]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=6)
    page.mouse.up()
    page.expect(COMMAND).to_contain_text("style_scale=")
    page.keyboard.press("Control+z")
    page.expect(COMMAND).not_to_contain_text("style_scale=")
    page.expect("#undo").to_have_attribute("aria-disabled", "true")
    field = page.locator("[id=control-size]")
    field.press("End")
    field.press_sequentially("0")
    page.keyboard.press("Control+z")
    page.expect("[id=control-size]").to_have_value("512")
    page.expect("#undo").to_have_attribute("aria-disabled", "true")


def test_undo_steers_a_run_back_and_returns_to_a_result(page):
    page.paint_tiny()
    page.enter("style_scale", "2")
    page.expect(COMMAND).to_contain_text("style_scale=2")
    page.expect("#status").to_contain_text("step")
    page.keyboard.press("Control+z")
    page.expect(COMMAND).not_to_contain_text("style_scale=2")
    page.expect("#go").to_have_text("Pause")
    page.click("#stop")
    page.expect("#status").to_contain_text("Stopped")
    page.click("[data-picker=style] .tile[title=mosaic] button")
    page.expect("#status").to_have_text("Sketch")
    page.click("#undo")
    page.expect("#status").to_contain_text("Stopped")
    page.expect("#title").to_have_text("coffee in oil")
    page.expect("[data-picker=style] [aria-pressed=true]").to_have_text("oil")


# The panel's settings, what is on the stage, and what is drawn, once the last stroke is saved.
STATE = """async () => {
  const store = await import("/static/store.js");
  const { flushBrush, layers } = await import("/static/layers.js");
  await flushBrush();
  const sum = (bytes) => bytes.reduce((all, one, at) => (31 * all + one * (at % 977)) % 999983, 0);
  const drawn = [...layers()].map(([key, { bytes }]) => [key, sum(bytes)]);
  const some = drawn.filter(([, number]) => number).sort();
  return JSON.stringify([store.values(store.settings()), store.state.view, some]);
}"""
IS_STATE = f"async (wanted) => (await ({STATE})()) === wanted"
# Elements -> the keys of which one is pressed on them; None for a click.
ACTS = {
    "[data-picker=style] .tile[title=woodcut] button": None,
    "[data-picker=style] .tile[title=oil] button": None,
    "[data-picker=content] .tile[title=rocket] button": None,
    "[data-control=style_scale] input[type=range]": ["End", "Home", "ArrowRight"],
    "#stage": [" ", " ", " ", "ArrowLeft", "ArrowUp"],
    "#brushes >> text=Erase": None,
    "#brushes >> text=photograph": None,
    "#brushes >> text=Fill": None,
    "#looks >> text=bold": None,
}


@pytest.mark.parametrize(("width", "seed"), [(390, 1), (1280, 2)])
def test_undo_and_redo_among_random_actions(width, seed, address, visited):
    random = Random(seed)
    with visited(address, width, made=None) as page:
        page.click("#brush")
        past, future = [page.evaluate(STATE)], []
        for _ in range(16):
            act = random.choice([*ACTS, *["undo", "redo"] * 4])
            if act in ACTS:
                target = page.locator(act).first
                target.press(random.choice(ACTS[act])) if ACTS[act] else target.click()
                if (now := page.evaluate(STATE)) != past[-1]:
                    past, future = [*past, now], []
                continue
            page.keyboard.press("Control+z" if act == "undo" else "Control+Shift+z")
            if act == "undo" and len(past) > 1:
                future.append(past.pop())
            elif act == "redo" and future:
                past.append(future.pop())
            page.wait_for_function(IS_STATE, arg=past[-1])
        assert page.complaints == []
