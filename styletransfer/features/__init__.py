"""Feature networks: frozen networks with named layers, whose features the losses compare.

No loss is here, and no training: style networks, which paint, are in the room `networks`.
"""

from styletransfer.features.build import build_features
from styletransfer.features.extractor import FeatureExtractor, optimize_for_inference

__all__ = ["FeatureExtractor", "build_features", "optimize_for_inference"]
