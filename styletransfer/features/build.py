"""Builds a feature network from its settings."""

import logging
from pathlib import Path

import torch

from styletransfer.features import vgg, weights
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.pictures import images
from styletransfer.settings import ASSETS, FeaturesConfig
from styletransfer.system.files import sha256

logger = logging.getLogger(__name__)

OPTIONS = ("pooling", "padding", "preprocessing")
# These files need Caffe's preprocessing: vgg19-d01eb7cb.pth and vgg16-00b39a1b.pth, which
# neural-style-pt downloads. They are recognised by the first digits of their SHA-256 hashes.
CAFFE_FILES = ("d01eb7cb", "00b39a1b")
# Ranges (low, high) in which the mean of relu4_1 for a small photograph usually lies. It is about 1
# in a network trained in torch (0.46 to 0.87 in the bundled one), and 550 to 1040 in Oxford's
# VGG-19, trained in Caffe. It is 17 to 27 if a network trained in Caffe, whose input values are
# from 0 to 255, gets torchvision's input values instead: then pastiches are wrong.
USUAL = ((0.1, 10.0), (300.0, 3000.0))


def build_features(config: FeaturesConfig, seed: int = 0) -> FeatureExtractor:
    """Return the frozen network that `config` describes, in float32 on the CPU.

    `seed` seeds the random weights if `config.weights` is "random". Raises UserError if weights
    cannot be read or downloaded, or do not fit the network.
    """
    state, origin, options = None, config.weights, {key: getattr(config, key) for key in OPTIONS}
    if config.preprocessing == "auto":
        options["preprocessing"] = "imagenet"
    if config.weights not in ("pretrained", "random"):
        state = weights.read(Path(config.weights))
        if config.preprocessing == "auto" and sha256(config.weights).startswith(CAFFE_FILES):
            options["preprocessing"] = "caffe"
    elif config.name == "bundled":
        state, origin = weights.read(weights.BUNDLED), "the bundled network"
    elif config.weights == "pretrained":
        state, origin = vgg.pretrained_state(config.name), f"torchvision's {config.name}"
    if state is not None and config.name == "bundled":
        widths = vgg.widths_of(state, origin)
    else:
        widths = vgg.WIDTHS[config.name]
    network = vgg.build(widths, **options)
    if state is None or config.weights == "random":
        vgg.randomize(network, seed)
    else:
        vgg.load(network, state, widths, origin, is_bgr=options["preprocessing"] == "caffe")
        if config.weights == origin and config.preprocessing == "auto":
            _warn_of_odd_means(network, origin)
    return network


@torch.no_grad()
def _warn_of_odd_means(network: FeatureExtractor, origin: str) -> None:
    """Log a warning if the mean of relu4_1 for a bundled photograph lies in no range of USUAL."""
    if "relu4_1" not in network.layers:
        return
    photo = images.resize_picture(images.read(str(ASSETS / "content" / "coffee.jpg")), 64)
    mean = network(photo.rgb, ["relu4_1"])["relu4_1"].mean().item()
    if not any(low < mean < high for low, high in USUAL):
        logger.warning(
            "%s gives relu4_1 a mean of %.3g for a photograph, and networks that see the values "
            "they were trained with give about 1, or about 1000 if they come from Caffe; if it "
            "was trained with other values than torchvision's, say so with features.preprocessing",
            *(origin, mean),
        )
