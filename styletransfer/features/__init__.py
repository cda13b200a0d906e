"""Feature networks, and how a network is built from its settings."""

from pathlib import Path

from styletransfer.features import vgg, weights
from styletransfer.features.extractor import FeatureExtractor, optimize_for_inference
from styletransfer.settings import FeaturesConfig
from styletransfer.system.files import sha256

__all__ = ["FeatureExtractor", "build_features", "optimize_for_inference"]

OPTIONS = ("pooling", "padding", "preprocessing")
# First digits of the SHA-256 of the files that are known to need Caffe's preprocessing:
# vgg19-d01eb7cb.pth and vgg16-00b39a1b.pth, which neural-style-pt downloads.
CAFFE_FILES = ("d01eb7cb", "00b39a1b")


def build_features(config: FeaturesConfig, seed: int = 0) -> FeatureExtractor:
    """Return the frozen network that `config` describes, in float32 on the CPU.

    `seed` draws the weights where `config.weights` is "random". A UserError reports weights
    that cannot be read, downloaded or fitted to the network.
    """
    state, origin, options = None, config.weights, {key: getattr(config, key) for key in OPTIONS}
    if config.preprocessing == "auto":
        options["preprocessing"] = "imagenet"
    if config.weights not in ("pretrained", "random"):
        state = weights.read(Path(config.weights))
        if config.preprocessing == "auto" and sha256(config.weights).startswith(CAFFE_FILES):
            options["preprocessing"] = "caffe"
    elif config.name == "bundled":
        state, origin = weights.read_bundled(), "the bundled network"
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
    return network
