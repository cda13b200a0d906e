"""Style networks on a pretended GPU: training and painting; no operation mixes devices."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import layers, needs, picture, write_pictures
from networks.nets import applying, short_training, write_network
from pretended import pretended_gpu

from styletransfer.networks.deploy import neighbours
from styletransfer.networks.training.train import train
from styletransfer.pictures import images

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture(autouse=True)
def desk(desk):
    """Write a network of two styles, one for any style, and pictures; return their folder."""
    write_network("oil", "wash")
    write_network()
    images.write("photo.png", picture(0, 13, 22))
    images.write("mask.png", (torch.arange(22) > 9).float().expand(1, 3, 13, 22))
    return desk


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"style_weights": [0.5, 0.5], "color": "content_palette"},
        {"content_regions": "mask.png", "region_styles": {"white": 1, "black": 2}},
        {"protect": "mask.png", "style": "wash", "precision": "bfloat16"},
        {"network": "any.safetensors", "style": "style.png", "strength": 1.5},
        {"network": "any.safetensors", "style": "style.png", "color": "style_palette"},
    ],
    ids=lambda words: " ".join(words) or "plain",
)
def test_a_network_paints(gpu, words):
    applying("photo.png", "out.png")(device="cuda", **words)
    assert images.read("out.png").size == (13, 22)


@pytest.mark.usefixtures("gpu")
def test_norms_on_a_gpu_join_no_neighbours():
    x = torch.ones(1, 4, 6, 8)
    assert (neighbours(x), neighbours(x.to("cuda"))) == (8, 1)


@pytest.mark.slow
def test_a_network_is_trained_and_goes_on():
    """Equal bits are no promise here: torch's enlarging has no ordered backward on CUDA."""
    write_pictures("oil.png", "photos/a.png", height=32, width=40)
    config = short_training(
        style=["oil.png", "style.png"],
        pictures="photos",
        batch=2,
        style_size=24,
        objective=layers(),
    )
    with pretended_gpu(repeats=False):
        for steps in (2, 4):
            train(replace(config, device="cuda", steps=steps), Path(f"run{steps}"))
    assert Path("run4").is_dir()


@pytest.mark.slow
def test_a_network_learns_a_painted_photograph():
    needs("video", "av", "cv2")
    write_pictures("film/0.png", "film/1.png", "painted.png", height=24, width=32)
    config = short_training(style="painted.png", style_source="film/1.png", start=None)
    with pretended_gpu(repeats=False):
        train(replace(config, pictures="film", style_size=32, device="cuda"), Path("run"))
