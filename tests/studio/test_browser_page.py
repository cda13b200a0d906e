"""The page's parts in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from studio_pages import Visit, needs_chromium, served, visited

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("studio")) as found:
        yield found


@pytest.fixture
def page(address: str) -> Iterator[Visit]:
    with visited(address) as opened:
        yield opened


@pytest.mark.parametrize("width", [390, 1280, 3840])
def test_first_look_shows_six_controls_and_fits(width: int, address: str) -> None:
    with visited(address, width) as page:
        assert page.locator(".control:visible").count() == 6
        page.click("#more > summary")
        for group in page.locator(".group > summary").all():
            group.click()
        assert page.locator(".control:visible").count() > 30
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.complaints == []


def test_command_line_follows_the_settings(page: Visit) -> None:
    page.enter("size", "96")
    page.expect("#command pre").to_contain_text("size=96")
    page.expect("#status").to_contain_text("96 \u00d7 64 pixels")
    page.click("[data-control=size] .reset")
    page.expect("[id=control-size]").to_have_value("512")
    page.expect("#command pre").not_to_contain_text("size")
    page.expect("[data-control=size] .reset").to_be_hidden()


def test_refusal_stands_beside_its_control_until_it_changes(tmp_path: Path) -> None:
    error = "[data-control='objective.content_weight'] .error"
    with served(tmp_path) as address, visited(address) as page:
        page.enter("objective.content_weight", "-1")
        page.click("#go")
        page.expect(error).to_contain_text("must be a finite number, 0 or more")
        page.enter("objective.content_weight", "1")
        page.expect(error).to_be_hidden()


def test_refused_change_is_put_back_while_it_goes_on_painting(tmp_path: Path) -> None:
    with served(tmp_path) as address, visited(address) as page:
        page.paint_tiny()
        page.enter("objective.content_weight", "-1")
        page.expect("[data-control='objective.content_weight'] .error").to_be_visible()
        page.expect("[id='control-objective.content_weight']").to_have_value("0.25")
        page.expect("#go").to_have_text("Pause")


def test_what_is_no_picture_is_refused_beside_its_picker(page: Visit) -> None:
    page.drop("[data-picker=style]", letter=b"Dear Sir or Madam")
    page.expect("[data-control=style] .error").to_contain_text("letter.png")
    page.expect("[data-picker=style] .chosen").to_have_text("oil")


def test_several_styles_are_mixed_and_shared_out(page: Visit) -> None:
    page.click("text=Mix several")
    page.click("[data-picker=style] .tile[title=mosaic]")
    page.expect("[data-picker=style] .badge").to_have_count(2)
    page.click("#more > summary")
    page.click("[data-group=strokes] > summary")
    page.expect(".shares input").to_have_count(2)
    page.locator(".shares input").last.press("Home")
    page.expect("#command pre").to_contain_text("style_weights=[1,0]")
    page.click("text=Mix several")
    page.expect("#command pre").not_to_contain_text("style_weights")


def test_pasted_picture_is_asked_about(page: Visit) -> None:
    page.evaluate(
        """() => {
          const held = new DataTransfer();
          held.items.add(new File(["no picture"], "clip.png", { type: "image/png" }));
          document.dispatchEvent(
            new ClipboardEvent("paste", { clipboardData: held, bubbles: true }));
        }"""
    )
    page.expect("dialog").to_be_visible()
    page.keyboard.press("Escape")
    page.expect("dialog").to_have_count(0)


def test_brush_works_by_keys(page: Visit) -> None:
    page.click("#brush")
    page.locator("#stage").focus()
    page.keyboard.press(" ")
    page.expect("#command pre").to_contain_text("content_regions=")
    page.keyboard.press("Control+z")
    page.expect("#command pre").not_to_contain_text("content_regions=")
    page.click("#brushes >> text=Protect")
    page.click("#brushes >> text=Fill")
    page.expect("#command pre").to_contain_text("protect=")
    page.click("#brushes >> text=Clear")
    page.expect("#command pre").not_to_contain_text("protect=")
    page.keyboard.press("Escape")
    page.expect("#brushes").to_be_hidden()
    assert page.complaints == []


def test_each_region_has_its_style(page: Visit) -> None:
    page.click("text=Mix several")
    page.click("[data-picker=style] .tile[title=mosaic]")
    page.click("#brush")
    page.locator("#stage").press(" ")
    page.expect("#command pre").to_contain_text("region_styles=")
    page.select_option("[aria-label='Style of the rest']", "2")
    page.expect("#command pre").to_contain_text("blue:2")
    page.click("[data-picker=content] .tile[title=astronaut]")
    page.expect("#command pre").not_to_contain_text("regions")
    assert page.complaints == []


def test_picture_is_zoomed_and_moved(page: Visit) -> None:
    stage = page.locator("#stage")
    stage.press("1")
    page.expect("#percent").to_have_text("100 %")
    page.expect("#one").to_have_attribute("aria-pressed", "true")
    stage.press("+")
    page.expect("#percent").to_have_text("150 %")
    page.click("#fit")
    page.expect("#fit").to_have_attribute("aria-pressed", "true")
    stage.hover()
    page.mouse.wheel(0, -500)
    page.expect("#fit").to_have_attribute("aria-pressed", "false")


def test_divider_compares_by_keys(page: Visit) -> None:
    page.click("#compare")
    divider = page.locator("#divider")
    divider.press("ArrowRight")
    page.expect("#divider").to_have_attribute("aria-valuenow", "55")
    divider.press("End")
    page.expect("#divider").to_have_attribute("aria-valuenow", "100")


def test_tabs_change_by_keys(page: Visit) -> None:
    page.locator("#tab-paint").press("ArrowRight")
    page.expect("#lesson").to_be_visible()
    page.expect("#paint").to_be_hidden()


def test_waiting_runs_are_listed_and_taken_out(page: Visit) -> None:
    page.paint_tiny()
    page.click("#enqueue")
    page.expect("#queue li").to_have_count(1)
    page.click("#queue button")
    page.expect("#queue").to_be_hidden()
    page.click("#stop")
    page.expect("#status").to_contain_text("Stopped")
    assert page.complaints == []


def test_page_says_when_the_server_is_gone(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        opened = visited(address)
        page = opened.__enter__()
    page.expect("#messages").to_contain_text("does not answer")
    opened.__exit__(None, None, None)
