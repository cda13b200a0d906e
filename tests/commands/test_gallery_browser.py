"""The gallery in a real browser; skipped where no Chromium is installed."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from galleries import make_sweep

from styletransfer.commands.gallery.command import make_gallery
from styletransfer.config import GalleryConfig

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the page with"),
]

# The page stands in a frame of a given width, as no headless window is narrower than 500 pixels.
# A file may not look into another one, so the page comes by srcdoc, under its own policy.
FRAME = """<!DOCTYPE html><html><head><title></title></head><body>
<iframe width="WIDTH" height="900"></iframe>
<script>
const frame = document.querySelector("iframe");
const seen = { violations: [], errors: [] };
frame.addEventListener("load", () => setTimeout(() => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const all = (query) => [...page.querySelectorAll(query)];
  const labels = () => all(".zoom img").map((one) => one.alt);
  const choose = (text) => {
    const order = page.getElementById("order");
    order.value = [...order.options].find((one) => one.text === text).value;
    order.dispatchEvent(new view.Event("change"));
    return labels();
  };
  seen.overflow = page.documentElement.scrollWidth - view.innerWidth;
  seen.swept = labels();
  seen.slowest = choose("by time");
  seen.listed = !page.getElementById("sorted").hidden && page.getElementById("swept").hidden;
  seen.again = choose("as swept");
  seen.home = all("td .card").length;
  const zoom = page.getElementById("zoom"), first = all(".zoom")[0];
  first.focus();
  first.click();
  seen.opened = zoom.open && zoom.querySelector("img").src === first.querySelector("img").src;
  zoom.dispatchEvent(new view.KeyboardEvent("keydown", { key: "ArrowLeft" }));
  seen.flipped = zoom.querySelector("img").alt;
  zoom.close();
  all("details").forEach((one) => { one.open = true; });
  seen.drawn = all("polyline").every((one) => one.getClientRects().length === 1);
  seen.copies = all(".copy").filter((one) => one.getClientRects().length).length;
  seen.wide = page.documentElement.scrollWidth - view.innerWidth;
  seen.loaded = view.performance.getEntriesByType("resource")
    .map((one) => one.name).filter((name) => !name.startsWith("data:"));
  seen.broken = all("img[src]").filter((one) => !one.naturalWidth && one.src).length;
  document.title = JSON.stringify(seen);
}, 300));
frame.srcdoc = PAGE;
</script></body></html>
"""


def probe(folder: Path, width: int) -> dict[str, Any]:
    """Use the page of a small sweep in a frame so wide; return what the script above saw."""
    make_sweep(folder / "sweep")
    _, path = make_gallery(GalleryConfig(str(folder / "sweep")))
    page = json.dumps(path.read_text(encoding="utf-8")).replace("</", "<\\/")
    framed = folder / "framed.html"
    framed.write_text(FRAME.replace("WIDTH", str(width)).replace("PAGE", page), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--disable-background-networking", f"--user-data-dir={folder / 'profile'}"]
    command += ["--enable-logging=stderr", "--v=0", "--dump-dom", "--virtual-time-budget=3000"]
    command += ["--window-size=1400,1000", framed.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    (title,) = re.findall(r"<title>(.*?)</title>", done.stdout.partition("<body>")[0])
    assert title, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(unescape(title))
    return seen | {"console": [line for line in done.stderr.splitlines() if "CONSOLE" in line]}


@pytest.mark.parametrize("width", [390, 1280])
def test_page_sorts_enlarges_and_fits(width, tmp_path):
    seen = probe(tmp_path, width)
    assert seen["console"] == []
    assert seen["loaded"] == []
    assert seen["overflow"] <= 0
    assert seen["wide"] <= 0  # with every curve unfolded, too
    assert seen["slowest"] == [
        f"style {style}.jpg, objective.content_weight {weight}"
        for style in ("ink", "oil")
        for weight in ("2.0", "0.5", "10.0")
    ]
    assert seen["listed"]
    assert seen["again"] == seen["swept"]
    assert seen["home"] == 6
    assert seen["opened"]
    assert seen["flipped"] == seen["swept"][-1]
    assert seen["drawn"]
    assert seen["copies"] == 6
    assert seen["broken"] == 0
