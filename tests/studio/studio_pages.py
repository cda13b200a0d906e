"""Opens the studio's page in a real browser, with its server as a separate process."""

import base64
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from helpers import ROOT, needs
from PIL import Image, ImageOps
from studio.studios import QUICK, WAITING, Process, bytes_of

playwright = needs("browser", "playwright.sync_api")
axe = needs("browser", "axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no Chromium to open the page with", allow_module_level=True)
# Timeout in milliseconds, long enough for a slow and busy machine.
PATIENCE = 120_000
# JavaScript that drops files, [name, base64] each, on an element, as a user does with the mouse.
DROP = """([query, files]) => {
  const dropped = new DataTransfer();
  for (const [name, text] of files) {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    dropped.items.add(new File([bytes], name, { type: "image/png" }));
  }
  const target = document.querySelector(query);
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(
      new DragEvent(kind, { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""
# JavaScript that replaces the small pictures on tiles, which take seconds, by an icon, except those
# whose addresses have the pattern MADE; LEFT is that of all which are left out.
FEW_SMALL_LOOKS = """
  const own = Object.getOwnPropertyDescriptor(HTMLImageElement.prototype, "src");
  const isLeftOut = (url) => /LEFT/.test(url) && !/MADE/.test(url);
  const stood = (url) => (isLeftOut(url) ? "/static/icon.svg" : url);
  Object.defineProperty(HTMLImageElement.prototype, "src",
    { ...own, set(url) { own.set.call(this, stood(url)); } });"""


def png(width, height, color):
    """Return the bytes of a PNG file with rings in one colour."""
    rings = Image.radial_gradient("L").resize((width, height)).point(lambda level: level * 5 % 256)
    return bytes_of(ImageOps.colorize(rings, color, "white"))


@contextmanager
def served(folder, *words):
    """Start the studio in a folder; yield its `Process`; end it afterwards."""
    found = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    studio = Process(folder, "open=false", *words, program=("-c", QUICK), PYTHONPATH=found)
    try:
        yield studio
    finally:
        studio.process.terminate()
        studio.process.communicate(timeout=180)
        studio.close()


@dataclass
class Visit:
    """A Visit is one open page and its errors.

    Attributes:
        page: Playwright's page.
        complaints: error messages of the console, of scripts and of requests.
    """

    page: Any
    complaints: list[str] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.page, name)

    def expect(self, query):
        """Return Playwright's assertions, which retry, on the elements of a selector."""
        return playwright.expect(self.page.locator(query))

    def drop(self, query, **files):
        """Drop PNG files, given as name=bytes, on the element of a selector."""
        texts = [[f"{name}.png", base64.b64encode(data).decode()] for name, data in files.items()]
        self.page.evaluate(DROP, [query, texts])

    def enter(self, key, text):
        """Type `text` and Enter into the field of the setting `key`."""
        field = self.page.locator(f'[id="control-{key}"]')
        field.fill(text)
        field.press("Enter")

    def unfold(self):
        """Unfold the controls that act only once a picture is painted."""
        if not self.page.locator("#more[open]").count():
            self.page.click("#more > summary")

    def last_long(self):
        """Enter settings whose loss falls for minutes: a run ends once it settles."""
        for key, value in WAITING.items():
            self.enter(key, str(value))

    def paint(self):
        """Start the run, and wait for its first step."""
        self.page.click("#go")
        self.expect("#status").to_contain_text(re.compile(r"step \d"))

    def paint_tiny(self):
        """Start a run that lasts for minutes and whose steps are short."""
        self.unfold()
        self.last_long()
        self.paint()


@contextmanager
def browsing():
    """Start a browser with a camera that shows a test picture; yield it."""
    playwright.expect.set_options(timeout=PATIENCE)
    camera = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with playwright.sync_playwright() as tools:
        patient = {"args": ["--no-sandbox", *camera], "timeout": PATIENCE}
        yield tools.chromium.launch(executable_path=CHROMIUM, **patient)


@contextmanager
def visited_by(browser, address, width=1280, scheme="light", height=844, made="none"):
    """Open the page in a new browser profile, below 500 pixels wide as on a phone; yield Visit.

    `made` is a pattern of the addresses of small pictures that are made, see FEW_SMALL_LOOKS; with
    None, the sketch on the stage is an icon, too.
    """
    phone = {"has_touch": width < 500, "is_mobile": width < 500}
    size = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme, **phone)
    context.set_default_timeout(PATIENCE)
    left = "api.look" if made is None else "side=256|trial=1"
    script = FEW_SMALL_LOOKS.replace("LEFT", left).replace("MADE", made or "none")
    context.add_init_script(script)
    try:
        yield visit(context, address)
    finally:
        context.close()


def _note_failure(note, request):
    """Call `note` with a failed request, unless the page cancelled it, as for an old picture."""
    if request.failure != "net::ERR_ABORTED":
        note(f"{request.url}: {request.failure}")


def visit(context, address):
    """Open the page in a new tab of a browser; return its Visit."""
    page = context.new_page()
    opened = Visit(page)
    note = opened.complaints.append
    page.on("console", lambda said: said.type == "error" and note(f"{said.text} {said.location}"))
    page.on("pageerror", lambda error: note(str(error)))
    page.on("requestfailed", lambda request: _note_failure(note, request))
    page.goto(address)
    opened.expect(".tile img").not_to_have_count(0)
    opened.expect("#details pre").to_contain_text("styletransfer train")
    return opened


def violations(visit):
    """Return the serious and critical violations that axe-core finds, with their elements."""
    options = {"resultTypes": ["violations"]}  # other results take most of the time
    return [
        f"{one['id']}: {node['html']}"
        for one in axe.Axe().run(visit.page, options=options).response["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def dab(page):
    """Touch the middle of the picture with the brush: by a tap on a phone, else by the mouse."""
    box = page.locator("#stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if page.viewport_size["width"] < 500:
        page.touchscreen.tap(x, y)
        return
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 10, steps=3)
    page.mouse.up()
