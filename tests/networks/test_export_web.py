"""A style network as a folder for any static web host; tests/docs runs its page in a browser."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import ROOT, check_error, files_in, largest_file, needs, picture
from networks.nets import SLIM, style_network, write_network

from styletransfer.networks import file
from styletransfer.networks.commands.export import ExportConfig
from styletransfer.networks.encoder import moments, paint_rows, style_features
from styletransfer.networks.export import onnx_file, web
from styletransfer.networks.export.onnx_file import export_network


@pytest.fixture
def runtime(here):
    """Make an npm package here that looks like the real one; return onnxruntime."""
    onnxruntime = needs("onnx", "onnx", "onnxscript", "onnxruntime")
    for name in [name for files in web.BUILDS.values() for name in files]:
        path = Path("node_modules", web.PACKAGE, "dist", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is {name}")
    told = json.dumps({"name": web.PACKAGE, "version": web.VERSION})
    Path("node_modules", web.PACKAGE, "package.json").write_text(told)
    return onnxruntime


@pytest.fixture
def given(runtime, monkeypatch):
    """Return an ExportConfig of a network of two styles; fake the exporter."""
    file.write(Path("net.safetensors"), style_network(SLIM, 2), ["oil", "<été>"])
    monkeypatch.setattr(onnx_file, "as_onnx", lambda saved: [b"the network"])
    return ExportConfig("net.safetensors", "page", "web")


def test_the_folder_holds_all_that_the_page_asks_for(given, here, capsys):
    export_network(given)
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


@pytest.mark.slow  # the exporter is slow
@torch.no_grad()
def test_a_page_for_any_style_encodes_and_paints_as_torch_does(runtime, here):
    """Check that the first network's output is the second one's input; styles can be mixed."""
    page = ROOT / "build" / "site" / "html" / "paint"
    if page.exists():  # the page of the site that `.ci/run` has built
        network = file.read(file.network_file("any")).network
    else:
        page, network = here / "page", write_network()
        export_network(ExportConfig("any.safetensors", "page", "web"))
    look, paint = (
        runtime.InferenceSession(gzip.decompress((page / name).read_bytes()))
        for name in ("look.bin", "network.bin")
    )
    eye = style_features(torch.device("cpu"), torch.float32)
    paintings = [picture(seed, 24 + 9 * seed, 40).float() for seed in range(3)]
    styles = np.concatenate(
        [look.run(["style"], {"painting": one.numpy()})[0] for one in paintings]
    )
    rows = network.encoder(torch.cat([moments(eye, one) for one in paintings]))
    assert (torch.from_numpy(styles) - rows).abs().max() < 1e-4
    shown = torch.cat([picture(seed, 33, 46) for seed in range(3)]).float()
    (painted,) = paint.run(["pastiche"], {"image": shown.numpy(), "style": styles})
    assert (torch.from_numpy(painted) - paint_rows(network, shown, rows)).abs().max() < 1e-4


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
    ):
        check_error(re.escape(words), export_network, ExportConfig(**other | settings))
    with largest_file(100_000):
        check_error("cannot write page: .*; choose", export_network, given)
    assert files_in(here) == before
    assert not [path.name for path in here.iterdir() if path.name.startswith(".")]
    package.write_text(json.dumps({"name": web.PACKAGE, "version": "1.0.0"}))
    check_error(f"no {web.PACKAGE} {web.VERSION} at", export_network, given)
