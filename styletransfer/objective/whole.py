"""The function that style transfer minimises, and its gradient: the seam of the whole design.

Loss modes and precision vary behind `Objective.evaluate`; optimisers and scales vary before it.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from styletransfer.config import ObjectiveConfig
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.functions.moments import Moments, moments
from styletransfer.losses import get_style_loss, total_variation
from styletransfer.modes import LossMode, Term
from styletransfer.objective.limits import check_pictures
from styletransfer.objective.targets import Targets, make_targets
from styletransfer.objective.terms import Losses, layer_weights


class Objective:
    """The weighted losses of one content and one style image under one network, at one scale.

    Loss modules are transparent layers inserted after their layer, and the network ends with the
    deepest of them, as in the tutorials.

    Args:
        extractor: the frozen network, on the device and in the dtype of the computation.
        mode: how the losses reach the image's gradient.
        config: layers and linear weights.
        content: (1, 3, H, W), sRGB in [0, 1].
        style: (1, 3, h, w), sRGB in [0, 1].

    Raises:
        UserError: an unknown layer, a negative or NaN weight, no positive weight at all, an unknown
            normalisation or style loss, or an image too small for the deepest layer.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        mode: LossMode,
        config: ObjectiveConfig,
        content: Tensor,
        style: Tensor,
    ) -> None:
        self.mode, self.tv_weight = mode, config.tv_weight
        targets = _targets(extractor, config, content, style)
        self.terms: list[Term] = []
        layers: OrderedDict[str, nn.Module] = OrderedDict(preprocess=extractor.preprocess)
        # Names of layers hold no dots or slashes: "style_relu1_1" follows "relu1_1".
        ended = extractor.ended_at([*targets.contents, *targets.styles])
        for name, layer in ended.layers.items():
            layers[name] = layer
            if target := targets.contents.get(name):
                layers[f"content_{name}"] = mode.content(target.value, target.weight)
                self.terms.append(Term(f"content/{name}", layers[f"content_{name}"], target.weight))
            if target := targets.styles.get(name):
                module = mode.style(target.value, target.weight, targets.measure)
                layers[f"style_{name}"] = module
                self.terms.append(Term(f"style/{name}", module, target.weight))
        self.network = nn.Sequential(layers)

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`.

        The evaluation's graph is gone afterwards, whatever the loss mode.

        Args:
            image: (1, 3, H, W), sRGB in [0, 1], a leaf that requires grad.
        """
        self.network(image)
        prior = self.tv_weight * total_variation(image) if self.tv_weight > 0 else None
        values = self.mode.differentiate(self.terms, prior)
        terms = {term.name: value.detach() for term, value in zip(self.terms, values, strict=True)}
        if prior is not None:
            terms["total_variation"] = prior.detach()
        for term in self.terms:
            # Its graph would stay with it, and under fake_backward all that the graph keeps.
            term.module.loss = None  # type: ignore[assignment]
        return Losses(terms)


@torch.no_grad()
def _targets(
    extractor: FeatureExtractor, config: ObjectiveConfig, content: Tensor, style: Tensor
) -> Targets:
    """Look at both pictures, each as far as its losses ask."""
    content_layers, style_layers = layer_weights(config)
    ended = extractor.ended_at([*content_layers, *style_layers])
    check_pictures(ended, content, style)
    contents = extractor(content, content_layers) if content_layers else {}
    seen = extractor(style, style_layers) if style_layers else {}
    with_mean = get_style_loss(config.style_loss).with_mean
    styles: dict[str, Moments] = {}
    for name in list(seen):  # a large map is gone once it has been summed up
        styles[name] = moments(seen.pop(name), with_mean)
    return make_targets(config, contents, styles)
