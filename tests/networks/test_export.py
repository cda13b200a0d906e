"""Style networks as ONNX files: equal to the torch result, and usable without this package."""

import importlib.util
import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import ROOT, check_error, needs, picture
from networks.nets import SLIM, style_network

from styletransfer.errors import pip_install
from styletransfer.networks import file
from styletransfer.networks.apply.painter import Painter
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.networks.commands.export import ExportConfig, export
from styletransfer.networks.encoder import color_moments
from styletransfer.networks.export import whole
from styletransfer.networks.johnson import StyleNetwork
from styletransfer.networks.paintings import style_image
from styletransfer.pictures import images
from styletransfer.pictures.color import LEAST_VARIANCE, monge
from styletransfer.settings import ASSETS

# Sizes and strengths of pictures by the network for any style; the strength 1 may be left out.
SIZES = [(8, 64), (33, 200), (131, 77), (64, 48), (1030, 300)]
STRENGTHS = (1.0, 0.5, 0.25, 0.0)


def exported(styles, names):
    """Export a slim network as net.onnx, check that it paints as in torch, and return the network.

    Pictures of any size and batches of any length are checked, and what the file tells.
    """
    onnxruntime = needs("onnx", "onnx", "onnxscript", "onnxruntime")
    network = style_network(SLIM, styles)
    file.write(Path("net.safetensors"), network, names)
    export(ExportConfig("net.safetensors", "net.onnx"), Path.cwd())
    session = onnxruntime.InferenceSession("net.onnx")
    generator = torch.Generator().manual_seed(3)
    for batch, height, width in ((1, 8, 8), (3, 50, 70), (1, 33, 47), (3, 9, 64)):
        image = torch.rand(batch, 3, height, width, generator=generator)
        blend = torch.rand(batch, styles, generator=generator)
        blend = blend / blend.sum(1, keepdim=True)
        fed = {"image": image.numpy(), "blend": blend.numpy()}
        fed = {wanted.name: fed[wanted.name] for wanted in session.get_inputs()}
        painted = torch.from_numpy(session.run(["pastiche"], fed)[0])
        assert (painted - network(image, blend)).abs().max() < 1e-4
    shape = ["batch", 3, "height", "width"]
    inputs = {wanted.name: wanted.shape for wanted in session.get_inputs()}
    assert inputs == {"image": shape} | ({"blend": ["batch", 2]} if styles == 2 else {})
    assert {made.name: made.shape for made in session.get_outputs()} == {"pastiche": shape}
    told = session.get_modelmeta().custom_metadata_map
    assert (json.loads(told["styles"]), told["smallest_side"]) == (names, "8")
    assert {*inputs, "pastiche", "normalization"} <= told.keys()
    return network


@pytest.mark.slow  # the exporter is slow
@pytest.mark.usefixtures("here")
def test_a_network_of_two_styles_paints_any_size_as_torch_does():
    exported(2, ["oil", "été"])


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_consumer_in_the_docs_paints_without_our_code():
    network = exported(1, ["oil"])
    text = (ROOT / "docs" / "networks.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(import numpy.*?)```", text, re.S)
    assert "styletransfer" not in snippet
    images.write(Path("photo.jpg"), picture(0, 33, 47))
    subprocess.run([sys.executable, "-W", "error", "-c", snippet], check=True)
    painted = images.read(Path("pastiche.png")).rgb
    wanted = network(images.read(Path("photo.jpg")).rgb, torch.ones(1, 1))
    assert (painted - wanted).abs().max() < 0.6 / 255


@pytest.mark.parametrize(("height", "width"), [(30, 50), (700, 900), (64, 512), (9, 40)])
def test_the_graph_resizes_as_the_package_does(height, width):
    shown = picture(1, height, width).float()
    wanted = images.resize(shown, images.scaled_size((height, width), whole.ENCODED_SIDE))
    assert (whole.resized(shown) - wanted).abs().max() < 1e-5


def test_the_graph_moves_colours_as_the_package_does():
    """Check colourful, grey and constant pictures, by what the maps make of the colours."""
    colorful, other = picture(1).float(), (picture(2) ** 3).float()
    grey = colorful.mean(1, keepdim=True).expand(1, 3, -1, -1)
    palettes = [color_moments(one) for one in (colorful, other, grey, torch.full_like(grey, 0.5))]
    for own, goal in product(palettes, palettes):
        ours, theirs = (make(own[:, 1:], goal[:, 1:]) for make in (whole.geometric_mean, monge))
        deviation = torch.linalg.cholesky(own[:, 1:] + LEAST_VARIANCE * torch.eye(3))
        assert ((ours - theirs) @ deviation).abs().max() < 1e-5


@pytest.mark.slow
@torch.no_grad()
def test_one_file_for_any_style_paints_as_apply_does(here):
    """Check sizes, a grey picture, and each strength, which may be left out."""
    onnxruntime = needs("onnx", "onnxruntime")
    export(ExportConfig("any", "any.onnx"), here)
    session = onnxruntime.InferenceSession("any.onnx")
    photo = images.read(ASSETS / "content" / "coffee.jpg").rgb
    settings = {"network": "any", "style": str(ASSETS / "style" / "oil.jpg"), "device": "cpu"}
    painting = style_image(settings["style"], 704, 8)
    painters = [
        Painter(ApplyConfig(**settings, strength=strength, precision="float32"))
        for strength in STRENGTHS
    ]
    for number, size in enumerate(SIZES):
        shown = images.resize(photo, size)
        if number == 3:
            shown = shown.mean(1, keepdim=True).expand(1, 3, -1, -1).contiguous()
        which = number % len(STRENGTHS)
        fed = {"image": shown.numpy(), "painting": painting.numpy()}
        if which:
            fed["strength"] = np.array([STRENGTHS[which]], np.float32)
        (made,) = session.run(["pastiche"], fed)
        painter = painters[which]
        assert (torch.from_numpy(made) - painter.paint(shown)).abs().max() < 2 / 255


def test_bad_input_and_a_missing_extra_are_one_line(here, monkeypatch):
    file.write(Path("net.safetensors"), StyleNetwork(SLIM, 1), ["oil"])
    Path("text.safetensors").write_text("hello")
    Path("folder.onnx").mkdir()
    before = sorted(here.iterdir())
    for network, output, message in (
        ("gone.safetensors", "net.onnx", "no style network at gone.safetensors"),
        ("text.safetensors", "net.onnx", "text.safetensors is no style network"),
        ("net.safetensors", "net.pt", "output=net.pt must end in .onnx"),
        ("net.safetensors", "folder.onnx", "cannot write folder.onnx: it is a folder"),
        ("net.safetensors", "net.onnx", pip_install("onnx")),
    ):
        there = None if "pip" in message else "there"
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, there=there: there)
        check_error(re.escape(message), export, ExportConfig(network, output), here)
    assert sorted(here.iterdir()) == before
