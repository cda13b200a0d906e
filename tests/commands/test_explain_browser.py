"""The page in a real browser, on a phone's width; skipped where no Chromium is installed."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from explained import studied
from helpers import MODES

from styletransfer.commands.explain.command import draw_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTH = 500  # the narrowest window that every headless Chromium makes
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the page with"),
]

# Runs after the page's own script and leaves what it saw in the title.
PROBE = """
<script>
addEventListener("load", () => {
  location.hash = HASH;
  setTimeout(() => {
    const shown = [...document.querySelectorAll("section.mode")].filter((one) => !one.hidden);
    const box = shown[0].querySelector("[data-opens]");
    const group = document.getElementById(box.dataset.opens);
    const closed = !group.open;
    box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
    const texts = [...document.querySelectorAll("text, p, td, th, dd, dt, span, code, a")]
      .filter((one) => one.getClientRects().length && one.textContent.trim());
    document.title = JSON.stringify({
      shown: shown.map((one) => one.id),
      current: [...document.querySelectorAll(".modes [aria-current=true]")].map((one) => one.hash),
      overflow: document.documentElement.scrollWidth - innerWidth,
      smallest: Math.min(...texts.map((one) => parseFloat(getComputedStyle(one).fontSize))),
      scales: [...document.querySelectorAll("section:not([hidden]) .panel > svg")].map(
        (one) => one.getBoundingClientRect().width / one.viewBox.baseVal.width),
      clipped: [...document.querySelectorAll("section:not([hidden]) .panel > svg text")].filter(
        (one) => one.getBBox().x + one.getBBox().width > one.ownerSVGElement.viewBox.baseVal.width
      ).length,
      opened: closed && group.open,
      focusable: box.tabIndex === 0 && box.getAttribute("role") === "button",
    });
  }, 100);
});
</script>
"""


def probe(folder: Path, hash_: str) -> dict[str, Any]:
    """Open the page at a fragment and return what the script above saw."""
    page = draw_page([studied(mode) for mode in MODES], "tiny")
    script = PROBE.replace("HASH", json.dumps(hash_))
    path = folder / "page.html"
    path.write_text(page.replace("</body>", script + "</body>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [str(CHROMIUM), *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=2000", f"--window-size={WIDTH},900", path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (title,) = re.findall(r"<title>(.*?)</title>", done.stdout)
    seen: dict[str, Any] = json.loads(unescape(title))
    return seen


@pytest.mark.parametrize("mode", ["", MODES[1]])
def test_page_fits_a_phone_and_shows_one_mode_at_a_time(mode: str, tmp_path: Path) -> None:
    seen = probe(tmp_path, f"#{mode}" if mode else "")
    shown = mode or MODES[0]
    assert seen["shown"] == [shown]
    assert seen["current"] == [f"#{shown}"]
    assert seen["overflow"] <= 0
    assert seen["smallest"] >= 12
    # The map keeps its natural size and scrolls in its own box.
    assert seen["scales"] == [pytest.approx(1)]
    assert seen["clipped"] == 0
    assert seen["opened"]
    assert seen["focusable"]
