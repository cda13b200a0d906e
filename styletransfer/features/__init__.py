"""Feature networks: which there are, and how one is built from its settings."""

from pathlib import Path

from styletransfer.features import vgg, weights
from styletransfer.features.extractor import FeatureExtractor, optimize_for_inference
from styletransfer.settings import FeaturesConfig

__all__ = ["FeatureExtractor", "build_features", "optimize_for_inference"]

OPTIONS = ("pooling", "padding", "preprocessing")


def build_features(config: FeaturesConfig, seed: int = 0) -> FeatureExtractor:
    """Return the frozen network that `config` describes, in float32 on the CPU.

    `seed` draws the weights where `config.weights` is "random". A UserError reports weights
    that cannot be read, downloaded or fitted to the network.
    """
    state, origin = None, config.weights
    if config.weights not in ("pretrained", "random"):
        state = weights.read(Path(config.weights))
    elif config.name == "bundled":
        state, origin = weights.read_bundled(), "the bundled network"
    elif config.weights == "pretrained":
        state, origin = vgg.pretrained_state(config.name), f"torchvision's {config.name}"
    if state is not None and config.name == "bundled":
        widths = vgg.widths_of(state, origin)
    else:
        widths = vgg.WIDTHS[config.name]
    network = vgg.build(widths, **{key: getattr(config, key) for key in OPTIONS})
    if state is None or config.weights == "random":
        vgg.randomize(network, seed)
    else:
        vgg.load(network, state, widths, origin)
    return network
