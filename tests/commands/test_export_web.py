"""A style network as a folder that any static host serves: what is in it, and its page at work."""

import gzip
import json
import os
import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from helpers import check_error, files_in, largest_file, picture, style_network

from styletransfer.commands.export import command, web
from styletransfer.config import ExportConfig
from styletransfer.networks import Architecture, encoder, file
from styletransfer.pictures import images

SLIM = Architecture((3, 4, 5), 1)
RUNTIME = os.environ.get("ONNXRUNTIME_WEB")
WHY = f"ONNXRUNTIME_WEB=FOLDER names no npm package {web.PACKAGE}@{web.VERSION}"


@pytest.fixture
def given(here, monkeypatch):
    """A network of two styles, something in place of the runtime, and an exporter without work."""
    pytest.importorskip("onnxruntime", reason="install the extra: pip install -e '.[onnx]'")
    file.write(Path("net.safetensors"), style_network(SLIM, 2), ["oil", "<été>"])
    for name in [name for files in web.BUILDS.values() for name in files]:
        path = Path("node_modules", web.PACKAGE, "dist", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is {name}")
    told = json.dumps({"name": web.PACKAGE, "version": web.VERSION})
    Path("node_modules", web.PACKAGE, "package.json").write_text(told)
    monkeypatch.setattr(command, "as_onnx", lambda saved: [b"the network"])
    return ExportConfig("net.safetensors", "page", "web")


def test_the_folder_holds_all_that_the_page_asks_for(given, here, capsys):
    command.main(given, here)
    assert capsys.readouterr().out.splitlines()[0] == "page"
    found = files_in(here / "page")
    assert gzip.decompress(found["network.bin"]) == b"the network"
    assert gzip.decompress(found["ort.jspi.bin"]) == f"this is {web.BUILDS['jspi'][1]}".encode()
    assert found["ort.wasm.mjs"] == f"this is {web.BUILDS['wasm'][0]}".encode()
    assert b"MIT License" in found["onnxruntime.LICENSE"]
    styles = [(one["name"], one["row"], one["picture"]) for one in json.loads(found["styles.json"])]
    assert styles == [("oil", [1, 0], ""), ("<été>", [0, 1], "")]
    for name in ("index.html", "page.js", "painter.js", "sw.js"):
        names = r'["`]([\w./${}]+\.(?:m?js|css|json|jpg|bin))["`]'
        for one in re.findall(names, found[name].decode()):
            assert one.removeprefix("./").replace("${build}", "wasm") in {*found, "look.bin"}


def test_refused_or_stopped_midway_it_leaves_all_as_it_was(given, here):
    package = Path("node_modules", web.PACKAGE, "package.json")
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("years of work")
    before = files_in(here)
    other = {"network": given.network, "target": "web"}
    npm = f"no {web.PACKAGE} {web.VERSION} at gone; run npm install {web.PACKAGE}@{web.VERSION}"
    for settings, words in (
        ({"output": "mine"}, "output=mine is there already; remove it, or name another one"),
        ({"output": "page", "runtime": "gone"}, npm),
        ({"output": "mine/thesis.txt/page"}, "cannot write mine/thesis.txt/page"),
        ({"output": "page", "target": "app"}, "unknown target 'app'; choose onnx or web"),
    ):
        check_error(re.escape(words), command.main, ExportConfig(**other | settings), here)
    with largest_file(100_000):
        check_error("cannot write page: .*; choose", command.main, given, here)
    assert files_in(here) == before
    assert not [path.name for path in here.iterdir() if path.name.startswith(".")]
    package.write_text(json.dumps({"name": web.PACKAGE, "version": "1.0.0"}))
    check_error(f"no {web.PACKAGE} {web.VERSION} at", command.main, given, here)


@contextmanager
def served(folder):
    """Serve a folder as `python -m http.server` does; its address comes back."""

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
@pytest.mark.skipif(RUNTIME is None, reason=WHY)
@torch.no_grad()
def test_the_page_paints_as_python_does_and_without_a_network_too(tmp_path):
    """A picture and a style of one's own go in; what is saved is the network's, palette and all."""
    pages = pytest.importorskip("studio_pages")
    if pages.CHROMIUM is None:
        pytest.skip("no Chromium to open the page with")
    network = style_network(SLIM, 0)
    network.encoder = encoder.begun(network, None, partial(torch.rand, 9, 1920), seed=3)
    file.write(tmp_path / "any.safetensors", network, [])
    folder = tmp_path / "page"
    command.main(
        ExportConfig(str(tmp_path / "any.safetensors"), str(folder), "web", RUNTIME), tmp_path
    )
    given = [tmp_path / name for name in ("photo.png", "one.png", "two.png")]
    for seed, (path, size) in enumerate(zip(given, ((50, 70), (40, 56), (64, 48)), strict=True)):
        images.write(path, picture(seed, *size) ** (1 + seed))
    eye = encoder.build_eye(torch.device("cpu"), torch.float32)
    photo, *styles = (images.read(path).rgb for path in given)
    row = sum(network.encoder(encoder.moments(eye, one)) for one in styles) / 2
    goal = sum(encoder.palette(one) for one in styles) / 2
    wanted = encoder.finished(encoder.paint_rows(network, photo, row), goal)
    expect = pages.playwright.expect
    expect.set_options(timeout=pages.PATIENCE)
    with pages.playwright.sync_playwright() as tools:
        fake = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        browser = tools.chromium.launch(
            executable_path=pages.CHROMIUM, args=["--no-sandbox", *fake]
        )
        page, told = browser.new_page(viewport={"width": 390, "height": 844}), []
        page.set_default_timeout(pages.PATIENCE)
        page.on("console", lambda said: told.append(said.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        with served(folder) as address:
            page.goto(address)
            expect(page.locator("#kept")).to_contain_text("offline")
            page.set_input_files("#photo", given[0])
            for number, path in enumerate(given[1:], 7):  # beside the six that are there
                page.set_input_files("#painting", path)
                expect(page.locator("li")).to_have_count(number)
            page.locator("li input").nth(6).fill("100")
            expect(page.locator("#speed")).to_contain_text("70 x 50")
            expect(page.locator("canvas")).to_have_attribute("aria-busy", "false")
            assert pages.axe.Axe().run(page).response["violations"] == []
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            with page.expect_download() as kept:
                page.click("#save")
            painted = images.read(kept.value.path()).rgb
            assert (painted - wanted).abs().max() < 2 / 255
            page.click("#camera")
            expect(page.locator("#speed")).to_contain_text("frames per second")
        assert told == []
        page.reload()  # the server is gone
        page.set_input_files("#photo", given[0])
        expect(page.locator("#speed")).to_contain_text("70 x 50")
        browser.close()
