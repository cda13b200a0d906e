"""The built site, which `.ci/run` makes."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from helpers import ROOT, picture

from styletransfer.networks import encoder, file
from styletransfer.pictures import images

SITE = ROOT / "build" / "site" / "html"
WIDER = "document.documentElement.scrollWidth - innerWidth"


@pytest.mark.slow
@pytest.mark.skipif(
    not SITE.exists(), reason="there is no site; docs/README.md says how it is built"
)
def test_the_site_is_legible_on_a_phone_and_a_desk(browser):
    from studio import studio_pages as pages  # not at the top: the import skips without [browser]

    # Pages of different kinds; of others, what axe-core takes seconds for is on these as well.
    dark = ["index", "search", "docs/controls", "styletransfer/losses/content", "docs/zh/backward"]
    dark += ["docs/api/python", "docs/course/stepper", "docs/course/matrix"]
    others = ["docs/zh/clinic", "docs/course/modules", "docs/course/pastiche", "docs/README"]
    light = ["docs/controls", "docs/course/stepper"]
    found = []
    with browser.new_page() as page:
        for name in [*dark, *others]:
            page.goto((SITE / f"{name}.html").as_uri())
            for width, scheme, looked_at in ((390, "dark", dark), (1280, "light", light)):
                page.set_viewport_size({"width": width, "height": 844})
                page.emulate_media(color_scheme=scheme)
                if page.evaluate(WIDER) > 0:
                    found.append(f"{name} is wider than {width} pixels")
                found += pages.violations(pages.Visit(page)) if name in looked_at else []
    assert found == []


@contextmanager
def served(folder):
    """Serve a folder as `python -m http.server` does; yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *told):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "paint").exists(), reason="the site was built without its page")
@torch.no_grad()
def test_the_page_paints_as_python_does_and_offline(browser, tmp_path):
    """With a user's photo and two styles, the page saves the network's pastiche, with palette."""
    from studio import studio_pages as pages  # not at the top: the import skips without [browser]

    given = [tmp_path / name for name in ("photo.png", "one.png", "two.png")]
    for seed, (path, size) in enumerate(zip(given, ((50, 70), (40, 56), (64, 48)), strict=True)):
        images.write(path, picture(seed, *size) ** (1 + seed))
    network = file.read(file.network_file("any")).network
    eye = encoder.style_features(torch.device("cpu"), torch.float32)
    photo, *styles = (images.read(path).rgb for path in given)
    row = sum(network.encoder(encoder.moments(eye, one)) for one in styles) / 2
    goal = sum(encoder.color_moments(one) for one in styles) / 2
    wanted = encoder.finished(encoder.paint_rows(network, photo, row), goal)
    expect = pages.playwright.expect
    told = []
    with browser.new_page(viewport={"width": 390, "height": 844}) as page:
        page.set_default_timeout(pages.PATIENCE)
        page.on("pageerror", lambda error: told.append(str(error)))
        page.goto((SITE / "index.html").as_uri())
        expect(page.frame_locator("iframe").locator("#said")).to_contain_text("http.server")
        with served(SITE) as address:
            page.goto(f"{address}index.html")
            ours = f"{address}paint/"
            page.on("console", lambda said: ours in str(said.location) and told.append(said.text))
            frame = page.frames[1]
            expect(frame.locator("#kept")).to_contain_text("offline")
            frame.set_input_files("#photo", given[0])
            for number, path in enumerate(given[1:], 7):  # after the six bundled styles
                frame.set_input_files("#painting", path)
                expect(frame.locator("li")).to_have_count(number)
            frame.locator("li input").nth(6).fill("100")
            expect(frame.locator("#speed")).to_contain_text("70 x 50")
            expect(frame.locator("canvas")).to_have_attribute("aria-busy", "false")
            assert pages.axe.Axe().run(frame).response["violations"] == []
            assert frame.evaluate(WIDER) <= 0
            with page.expect_download() as kept:
                frame.click("#save")
            assert kept.value.suggested_filename == "photo in one and two.png"
            painted = images.read(kept.value.path()).rgb
            assert (painted - wanted).abs().max() < 2 / 255
            frame.click("#camera")
            expect(frame.locator("#speed")).to_contain_text("frames per second")
            page.click("text=Paint a photograph")
            expect(page.locator("#kept")).to_contain_text("offline")
        assert told == []
        page.reload()  # the server has been stopped
        page.set_input_files("#photo", given[0])
        expect(page.locator("#speed")).to_contain_text("70 x 50")
