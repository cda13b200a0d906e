"""The function that style transfer minimises, and its gradient.

`Descent` calls `Objective.evaluate` before each step of its optimiser, and need not know the loss
mode or the precision.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import LossLayer, LossMode, Term
from styletransfer.losses.moments import Moments, moments
from styletransfer.objective import Criterion, Losses, prior_losses, total
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.matching import match_targets
from styletransfer.objective.targets import (
    Extract,
    Measured,
    Target,
    Targets,
    WeightedLayer,
    content_targets,
    style_targets,
)


class Objective:
    """An objective computes the weighted losses of pictures of one size, and their gradient.

    Each loss module follows the layer whose features it compares, and returns its input. The
    network ends with the deepest loss module, as in the PyTorch tutorials.

    Args:
        extractor: the frozen network, on the device and in the dtype of the computation.
        mode: the way in which loss modules compute losses and differentiate them.
        criterion: which losses act at which layers, and the factor of each in the total.
        pictures: content, styles and regions, on the same device; `check_size` tells whether they
            are large enough for the deepest layer.
        styles: the result of `style_targets_of` for the same arguments and any content image, so
            that many pictures in one style share it. With None it is computed here.

    Raises:
        UserError: an unknown layer.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        mode: LossMode,
        criterion: Criterion,
        pictures: Inputs,
        styles: Targets | None = None,
    ) -> None:
        self.mode = mode
        self.priors = partial(prior_losses, criterion.tv_weight, pictures.anchor)
        targets = all_targets(
            *(extractor, criterion, pictures, styles),
            partial(_features, extractor),
            partial(_measured, extractor, criterion),
        )
        if criterion.seamless:  # after the targets, since style images are not seamless
            extractor = extractor.wrapped()
        self.terms: list[Term] = []
        layers: OrderedDict[str, nn.Module] = OrderedDict(preprocess=extractor.preprocess)
        # The loss layer of the target "style/relu1_1" follows "relu1_1" as "style_relu1_1".
        ended = extractor.ended_at(targets)
        for name, layer in ended.layers.items():
            layers[name] = layer
            for target in targets.get(name, []):
                module = self._loss_layer(target, criterion)
                layers[target.name.replace("/", "_")] = module
                self.terms.append(Term(target.name, module, target.weight))
        self.network = nn.Sequential(layers)

    def _loss_layer(self, target: Target, criterion: Criterion) -> LossLayer:
        if target.kind == "style":
            measure, positions = criterion.measure, target.positions
            return self.mode.style(target.value, target.weight, measure, positions)
        make = self.mode.content if target.kind == "content" else self.mode.match
        return make(target.value, target.weight)

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`; add their gradient to `image.grad`; free the graph."""
        output = self.network(image)
        priors = self.priors(image)
        values = self.mode.differentiate(self.terms, total(priors), output)
        terms = {term.name: value.detach() for term, value in zip(self.terms, values, strict=True)}
        terms |= {name: value.detach() for name, value in priors.items()}
        for term in self.terms:
            # The loss keeps its graph in memory, and after `retain_graph=True` the tensors in it.
            del term.module.loss
        return Losses(terms)


@torch.no_grad()
def style_targets_of(
    extractor: FeatureExtractor, criterion: Criterion, pictures: Inputs
) -> Targets:
    """Return the targets of the style losses of an `Objective`, for its argument `styles`."""
    return style_targets(criterion, extractor, pictures, partial(_measured, extractor, criterion))


@torch.no_grad()
def all_targets(
    extractor: FeatureExtractor,
    criterion: Criterion,
    pictures: Inputs,
    styles: Targets | None,
    extract: Extract,
    measured: Measured,
) -> Targets:
    """Return all targets; each picture passes through no more layers than its losses need.

    `extract` and `measured` return features of a picture, and their moments. `styles` are the style
    targets, or None to compute them.
    """
    if styles is None:
        styles = style_targets(criterion, extractor, pictures, measured)
    contents = content_targets(criterion, extractor, pictures.content, extract)
    matches, styles = match_targets(criterion, extractor, pictures, styles, extract, measured)
    targets: Targets = {}
    for layer in extractor.layers:
        positional = [kind[layer] for kind in (contents, matches) if layer in kind]
        if positional or layer in styles:
            targets[layer] = [*positional, *styles.get(layer, [])]
    return targets


def _features(
    extractor: FeatureExtractor, image: Tensor, layers: Collection[str]
) -> dict[str, Tensor]:
    return extractor(image, layers) if layers else {}


def _measured(
    extractor: FeatureExtractor,
    criterion: Criterion,
    image: Tensor,
    weighted: Sequence[WeightedLayer],
) -> list[Moments]:
    """Return the moments of the image's features at each weighted layer."""
    seen = _features(extractor, image, {layer for layer, _ in weighted})
    measured: dict[int, Moments] = {}
    for name in list(seen):  # frees large features once their moments are known
        features = seen.pop(name)
        for index, (layer, weights) in enumerate(weighted):
            if layer == name:
                measured[index] = moments(features, criterion.measure.with_mean, weights)
    return [measured[index] for index in range(len(weighted))]
