"""Feature networks: frozen networks with named layers, whose features the losses compare.

These networks are never trained here. Style networks, which paint pictures, are in `networks`.
"""

from styletransfer.features.build import build_features
from styletransfer.features.extractor import FeatureExtractor, optimize_for_inference

__all__ = ["FeatureExtractor", "build_features", "optimize_for_inference"]
