"""The site as it was built (`.ci/run` builds it), and what it is built from."""

import re
from urllib.parse import unquote, urlsplit

import pytest
from helpers import ROOT

SITE = ROOT / "build" / "site" / "html"
WIDER = "document.documentElement.scrollWidth - innerWidth"
BIBLIOGRAPHY = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
built = pytest.mark.skipif(
    not SITE.exists(), reason="there is no site; docs/README.md says how to build it"
)


def test_every_arxiv_number_stands_in_the_bibliography():
    texts = [
        path.read_text(encoding="utf-8")
        for folder in ("styletransfer", "docs", "tools", "assets")
        for kind in ("py", "md")
        for path in (ROOT / folder).rglob(f"*.{kind}")
    ]
    named = set(re.findall(r"arxiv(?:\.org/abs/|:)(\d{4}\.\d{4,5})", "".join(texts), re.I))
    assert len(named) > 20
    assert [number for number in sorted(named) if f"arXiv:{number}](" not in BIBLIOGRAPHY] == []


@built
def test_links_of_the_site_lead_somewhere():
    pages = {path: path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}
    assert len(pages) > 50
    broken = []
    for page, text in pages.items():
        for link in set(re.findall(r'(?:href|src)="([^"]+)"', text)):
            address = urlsplit(link)
            target = (page.parent / unquote(address.path)).resolve() if address.path else page
            if address.scheme or link.startswith("#"):
                continue
            there = address.fragment and target in pages and f'id="{address.fragment}"'
            if not target.exists() or (there and there not in pages[target]):
                broken.append((page.name, link))
    assert broken == []
    assert "/test_backward.html#line-" in pages[SITE / "docs" / "backward.html"]


@built
@pytest.mark.slow
def test_the_site_is_legible_on_a_phone_and_a_desk_and_without_a_mouse():
    studio = pytest.importorskip("studio_pages", reason="needs the extra [browser]")
    if studio.CHROMIUM is None:
        pytest.skip("no Chromium to open the site with")
    names = ["index", "search", "docs/README", "docs/controls", "docs/course/modules"]
    names += ["docs/course/pastiche", "docs/api/objective", "styletransfer/losses/style"]
    found = []
    with studio.playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=studio.CHROMIUM, args=["--no-sandbox"])
        for width, scheme in ((390, "dark"), (1280, "light")):
            size = {"width": width, "height": 844}
            page = browser.new_page(viewport=size, color_scheme=scheme)
            visit = studio.Visit(page)
            for name in names:
                page.goto((SITE / f"{name}.html").as_uri())
                if page.evaluate(WIDER) > 0:
                    found.append(f"{name} is wider than {width} pixels")
                found.extend(studio.violations(visit))
            page.goto((SITE / "search.html").as_uri() + "?q=gradcheck")
            page.wait_for_selector("ul.search li a")
            page.goto((SITE / "index.html").as_uri())
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.innerText") == "Skip to content"
        browser.close()
    assert found == []
