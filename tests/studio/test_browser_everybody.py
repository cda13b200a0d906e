"""The page for everybody: axe-core finds no serious violation in any state, light or dark."""

from pathlib import Path

import pytest
from studio_pages import Visit, needs_chromium, served, visited

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="no axe-core: pip install -e '.[browser]'"
)
pytestmark = [pytest.mark.slow, needs_chromium]


def violations(page: Visit) -> list[str]:
    """Return what axe-core holds for serious or critical, with the elements."""
    found = axe.Axe().run(page.page).response["violations"]
    return [
        f"{one['id']}: {node['html']}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_no_state_has_a_serious_violation(width: int, scheme: str, tmp_path: Path) -> None:
    with served(tmp_path) as address, visited(address, width, scheme) as page:
        assert violations(page) == []
        page.click("#more > summary")
        for group in page.locator(".group > summary").all():
            group.click()
        for about in page.locator(".about").all():
            about.click()
        assert violations(page) == []
        page.enter("objective.content_weight", "-1")
        page.click("#go")
        page.expect(".error:visible").to_have_count(1)
        page.click("#compare")
        page.click("#brush")
        assert violations(page) == []
        page.click("#reset-all")
        page.enter("size", "96")
        page.enter("steps", "50000")
        page.enter("optimizer.plateau", "0")
        page.click("#go")
        page.expect("#terms button").not_to_have_count(0)
        page.click("#remember")
        page.click("#enqueue")
        page.expect("#queue li").to_have_count(1)
        assert violations(page) == []
        page.click("#queue button")
        page.click("#stop")
        page.expect("#result dl").to_be_visible()
        assert violations(page) == []


def test_lesson_shows_three_modes_and_has_no_serious_violation(tmp_path: Path) -> None:
    with served(tmp_path) as address, visited(address, width=1500) as page:
        page.enter("size", "64")
        page.click("#tab-lesson")
        assert violations(page) == []
        page.click("#draw")
        page.expect("iframe").to_have_count(3)
        for mode in ("fake_backward", "loss_attribute", "autograd_function"):
            frame = page.frame_locator(f"[data-mode={mode}] iframe")
            # Until its script has chosen one, the page shows all three.
            frame.locator(f"a[href='#{mode}'][aria-current]").wait_for()
            assert frame.locator("section.mode:visible").get_attribute("id") == mode
        assert violations(page) == []
        assert page.complaints == []
