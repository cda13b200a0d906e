"""The function that style transfer minimises, and its gradient.

`Run` calls `Objective.evaluate` before each step of the optimiser. Neither `Run` nor the optimiser
needs to know the loss mode or the precision.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import LossMode, Term
from styletransfer.objective.calm import calm_regions
from styletransfer.objective.criterion import SEARCHED, Criterion
from styletransfer.objective.evaluation import Losses, prior_losses, total
from styletransfer.objective.inputs import Inputs, Region
from styletransfer.objective.matching import is_searched, match_targets, searches
from styletransfer.objective.reader import KeepingReader, Reader, WholeReader
from styletransfer.objective.repetition import ELSEWHERE, IN_CALM, repeated
from styletransfer.objective.targets import Targets, content_targets, style_targets
from styletransfer.pictures.images import size_of


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
        UserError: a layer of the criterion is unknown.
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
        targets = all_targets(criterion, _reader(extractor, criterion, pictures), pictures, styles)
        if criterion.seamless:  # the targets are made before: style images are not seamless
            extractor = extractor.wrapped()
        self.terms: list[Term] = []
        layers: OrderedDict[str, nn.Module] = OrderedDict(preprocess=extractor.preprocess)
        # The loss layer for the target "style/relu1_1" is "style_relu1_1" and follows "relu1_1".
        ended = extractor.ended_at(targets)
        for name, layer in ended.layers.items():
            layers[name] = layer
            for target in targets.get(name, []):
                module = mode.layer(target.distance, target.weight)
                layers[target.name.replace("/", "_")] = module
                self.terms.append(Term(target.name, module, target.weight))
        self.network = nn.Sequential(layers)

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`; add their gradient to `image.grad`; free the graph."""
        output = self.network(image)
        priors = self.priors(image)
        values = self.mode.differentiate(self.terms, total(priors), output)
        losses = {term.name: value.detach() for term, value in zip(self.terms, values, strict=True)}
        losses |= {name: value.detach() for name, value in priors.items()}
        for term in self.terms:
            # `loss` keeps its graph, and after `retain_graph=True` also the tensors saved in it.
            del term.module.loss
        return Losses(losses)


def _reader(extractor: FeatureExtractor, criterion: Criterion, pictures: Inputs) -> WholeReader:
    """Return a reader; with match losses it caches features, as pictures are read several times."""
    with_mean = criterion.measure.with_mean
    if not criterion.matches:
        return WholeReader(extractor, with_mean)
    kept = [(pictures.content, {*criterion.contents})]
    kept += [(style, {*criterion.styles, *criterion.matches}) for style in pictures.styles]
    for image, layers in kept:
        if is_searched(pictures, image):
            layers.update(SEARCHED)
    return KeepingReader(extractor, with_mean, kept)


def style_targets_of(
    extractor: FeatureExtractor, criterion: Criterion, pictures: Inputs
) -> Targets:
    """Return the targets of the style losses of an `Objective`, for its argument `styles`."""
    with torch.no_grad():
        reader = WholeReader(extractor, criterion.measure.with_mean)
        return _style_targets(criterion, reader, pictures, pictures.regions, ELSEWHERE)


def _style_targets(
    criterion: Criterion, reader: Reader, pictures: Inputs, regions: Sequence[Region], large: float
) -> Targets:
    """Return style targets; `large` is the factor on the loss of large shapes, see `repeated`."""
    regions = repeated(regions, pictures.repetitions, criterion.styles, large)
    return style_targets(criterion, reader, pictures.styles, regions)


@torch.no_grad()
def all_targets(
    criterion: Criterion, reader: Reader, pictures: Inputs, styles: Targets | None
) -> Targets:
    """Return all targets; `styles` are the style targets, or None to compute them."""
    if styles is None:
        styles = _style_targets(criterion, reader, pictures, pictures.regions, ELSEWHERE)
    found = searches(criterion, reader, pictures)
    kinds = [
        content_targets(criterion, reader, pictures.content),
        match_targets(criterion, reader.extractor, found, size_of(pictures.content)),
        styles,
    ]
    if found:  # calm places, such as a clear sky, have style losses of their own
        matches = next(iter(found.values()))
        calm = calm_regions(pictures, matches.calm, matches.freedom)
        kinds.append(_style_targets(criterion, reader, pictures, calm, IN_CALM))
    return {
        layer: [target for kind in kinds for target in kind.get(layer, [])]
        for layer in reader.extractor.layers
        if any(layer in kind for kind in kinds)
    }
