"""The objective and its exact gradient tile by tile: memory grows far slower than the picture.

A style loss couples all positions, but only through two moments, which are means over positions.
So pass one adds up the moments of all tiles without a graph, stage by stage, and keeps every
stage's input. From the moments follow the losses, and by plain autograd on small matrices
g = dL/dmean and H = dL/dsecond: dL/dF is then known at every position (see `MomentsTap`). Pass two
takes the stages in reverse, runs each tile again, this time with a graph, and feeds dL/dF where the
tile owns positions, and at the stage's end the gradient that the next stage has found. Content
losses are sums over positions themselves.

The price is a second forward, half as much work again (the weights are frozen, so a backward costs
no more than a forward). It is not paid where the last stages are one tile each: pass one then
keeps their graphs.

Several processes take a band of rows each. Pass one ends by adding up the moments, which are small,
and pass two by adding up the gradients. Where not even the inputs of the stages can be held for all
rows, nor the content's features, a process takes several bands in turn. The price is a third
forward and one of the content: pass two begins by finding both again for its band.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain

import torch
from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import LossMode
from styletransfer.losses.moments import Moments
from styletransfer.objective.bands import SavedForBackward
from styletransfer.objective.criterion import (
    Criterion,
    Losses,
    Prior,
    check_pictures,
    check_tile,
    total,
)
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.matching import matching
from styletransfer.objective.scan import BandLosses, Scan, Slopes
from styletransfer.objective.targets import (
    StyleTargets,
    Target,
    Targets,
    at_reference,
    content_targets,
    style_targets,
)
from styletransfer.system.processes import Processes


class TiledObjective:
    """The losses and the gradient of `Objective`, in memory that the tile bounds.

    Beside one tile's activations it holds the inputs of a band's stages, the content's features
    there, the picture and its gradient. Arguments are those of `Objective`, and:

    Args:
        mode: must be autograd_function: tiling rests on the closed form of the gradient.
        tile: side of a tile in pixels without its halo; at least the stride of the deepest layer.
            See `Stage.tiles`.
        processes: that share the work, all with the same arguments; one by default.
        bands: that each process takes in turn.

    Raises:
        UserError: another loss mode, a tile below the stride, and what `Objective` refuses.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        mode: LossMode,
        criterion: Criterion,
        pictures: Inputs,
        tile: int,
        styles: StyleTargets | None = None,
        processes: Processes | None = None,
        bands: int = 1,
    ) -> None:
        check_tile(extractor, mode, criterion, tile)
        self.extractor, self.criterion = extractor.ended_at(criterion.layers), criterion
        check_pictures(self.extractor, pictures)
        self.prior = Prior(criterion.tv_weight, pictures.anchor)
        self.processes = processes or Processes()
        with_mean = criterion.measure.with_mean
        self.scan = Scan(self.extractor, tile, with_mean, self.processes, bands)
        self.bands = self.scan.bands(pictures.content)
        if styles is None:
            styles = style_targets(criterion, self.extractor, pictures, self.scan.measured)
        self.content = pictures.content
        self.matching = matching(criterion, pictures, self._look) if criterion.matches else None
        self.targets = Targets(self._contents(), styles)

    def _contents(self) -> dict[str, Target]:
        """Return layer -> content target: of an only band, and without a value for several."""
        layers = self.criterion.contents.keys() - self.criterion.matches
        reference = self._look(at_reference(self.content), layers)
        reference |= {layer: self._matched(layer) for layer in self.criterion.matches}
        values = dict.fromkeys(self.criterion.contents, self.content.new_empty(0))
        if len(self.bands) == 1:
            values = self._seen(0)
        return content_targets(self.criterion, self.extractor, values, reference)

    def _look(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features of a whole picture, by this process alone."""
        alone = Scan(self.extractor, self.scan.tile, with_mean=False)
        return alone.features(image, layers, alone.bands(image, layers)[0]) if layers else {}

    def _seen(self, number: int) -> dict[str, Tensor]:
        """Return layer -> what the content losses compare with in a band."""
        layers = self.criterion.contents.keys() - self.criterion.matches
        seen, owned = {}, self.bands[number].owned
        if layers:
            band = self.scan.bands(self.content, layers)[number]
            seen = self.scan.features(self.content, layers, band)
        for layer in self.criterion.matches:
            stride = self.extractor.stride(layer)
            seen[layer] = self._matched(layer, slice(owned.start // stride, owned.stop // stride))
        return seen

    def _matched(self, layer: str, rows: slice = slice(None)) -> Tensor:
        assert self.matching is not None
        stride, size = self.extractor.stride(layer), self.content.shape[2:]
        return self.matching.values(layer, (size[0] // stride, size[1] // stride), rows)

    def evaluate(self, image: Tensor) -> Losses:
        """Do as `Evaluates` says, with an image of the content's size.

        `image.grad` is touched last: an evaluation that runs out of memory leaves it as it was.
        """
        terms, gradient = self._differentiate(image.detach())
        priors = self.prior.losses(image)
        if (prior := total(priors)) is not None:
            gradient += torch.autograd.grad(prior, image)[0]
        image.grad = gradient if image.grad is None else image.grad + gradient
        names = [target.name for layer in self.extractor.layers for target in self._targets(layer)]
        ordered = {name: terms[name] for name in names}
        return Losses(ordered | {name: value.detach() for name, value in priors.items()})

    def _targets(self, layer: str) -> list[Target]:
        """Return the targets at a layer, in the order of `Objective`'s losses."""
        content = self.targets.contents.get(layer)
        return [*([content] if content else []), *self.targets.styles.get(layer, [])]

    def _differentiate(self, image: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return the content and style losses by name, and their gradient (1, 3, H, W)."""
        terms = {target.name: image.new_zeros(()) for target in self.targets.contents.values()}
        sums = {
            target.name: self.scan.blank(layer, image)
            for layer, targets in self.targets.styles.items()
            for target in targets
        }
        slopes: Slopes = {}
        losses = [
            BandLosses(self.scan, self.targets, band, image, terms, sums, slopes)
            for band in self.bands
        ]
        with self.processes.sharing_shortage():
            saved = self._measure(image, losses)
        self.processes.add([moment for pair in sums.values() for moment in pair])
        self._compare(sums, terms, slopes)
        with self.processes.sharing_shortage():
            gradient = torch.zeros_like(image, memory_format=torch.contiguous_format)
            for number, mine in enumerate(losses):
                mine.targets = self._with_content(number)
                walked = saved or mine.band.forward(image, None, mine.feed)
                mine.band.backward(walked, mine.feed, gradient)
                mine.targets = self.targets
        self.processes.add([terms[target.name] for target in self.targets.contents.values()])
        self.processes.add([gradient])
        return terms, gradient

    def _measure(self, image: Tensor, losses: Sequence[BandLosses]) -> SavedForBackward | None:
        """Make pass one; return what it keeps of the only band, None of several."""
        if len(losses) == 1:
            (mine,) = losses
            return mine.band.forward(image, mine.measure, mine.measure_and_feed)
        for mine in losses:
            mine.band.show(image, mine.measure)
        return None

    def _with_content(self, number: int) -> Targets:
        """Return the targets with the content's features in a band, too many to be kept for all."""
        if len(self.bands) == 1:
            return self.targets
        contents = {
            layer: replace(self.targets.contents[layer], value=value)
            for layer, value in self._seen(number).items()
        }
        return replace(self.targets, contents=contents)

    def _compare(self, sums: dict[str, Moments], terms: dict[str, Tensor], slopes: Slopes) -> None:
        """Fill in style losses, and their gradients with respect to the moments."""
        for target in chain.from_iterable(self.targets.styles.values()):
            leaves = Moments(*(moment.requires_grad_() for moment in sums[target.name]))
            with torch.enable_grad():
                loss = target.weight * self.criterion.measure.loss(leaves, target.value)
            slope = torch.autograd.grad(loss, leaves, allow_unused=True)
            terms[target.name], slopes[target.name] = loss.detach(), (slope[0], slope[1])
