"""Computes the objective and its exact gradient tile by tile, to save memory.

A style loss depends on all positions, but only through two moments, which are means over positions.
The forward pass runs the network in stages, which are sequences of layers. It adds up the moments
of all tiles without a graph, and keeps the input of each stage. Style losses follow from the
moments. Autograd on small matrices gives g = dL/dmean and H = dL/dsecond. These give the gradient
dL/dF of the features F at every position (see `MomentsTap`). The backward pass takes the stages in
reverse, and runs each tile again, with a graph. It starts from the gradient that the next stage
gave, and adds dL/dF at the positions that the tile owns. Content and match losses are sums over
positions, so each tile computes its own summands.

The cost is a second forward pass: three passes instead of two. A backward pass costs about as much
as a forward pass, because the weights are frozen. The last stages, if they have a single tile, need
no second forward pass, because the first one keeps their graphs.
"""

from functools import partial

import torch
from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import LossMode, StyleDistance
from styletransfer.losses.moments import Moments
from styletransfer.objective.all_targets import all_targets
from styletransfer.objective.criterion import Criterion, check_tile
from styletransfer.objective.evaluation import Losses, prior_losses, total
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.targets import Targets
from styletransfer.tiling.scan import Scan, Slopes, TileLosses


class TiledObjective:
    """`TiledObjective` computes what `Objective` computes, tile by tile, to save memory.

    Memory holds one tile's activations, the inputs of all stages, the targets, the picture
    and its gradient. The arguments are those of `Objective`, except:

    Args:
        mode: a loss mode with gradients in closed form: autograd_function or tensor_hook.
        tile: side of a tile in pixels, without the halo that it also reads around it; at least the
            stride of the deepest layer. See `Stage.tiles`.

    Raises:
        UserError: the loss mode is another one, the pastiche is to be seamless, or the tile is too
            small. It is also raised where `Objective` raises it.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        mode: LossMode,
        criterion: Criterion,
        pictures: Inputs,
        tile: int,
        styles: Targets | None = None,
    ) -> None:
        check_tile(extractor, mode, criterion, tile)
        extractor = extractor.ended_at(criterion.layers)
        self.priors = partial(prior_losses, criterion.tv_weight, pictures.anchor)
        self.scan = Scan(extractor, tile, criterion.measure.with_mean)
        self.targets = all_targets(criterion, self.scan, pictures, styles)
        self.passes = self.scan.passes(pictures.content)

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses of `image`, and add their gradient to `image.grad`.

        `image` has the size of the content image.

        `image.grad` changes last, so an evaluation that runs out of memory leaves it unchanged.
        """
        terms, gradient = self._differentiate(image.detach())
        priors = self.priors(image)
        if (prior := total(priors)) is not None:
            gradient += torch.autograd.grad(prior, image)[0]
        image.grad = gradient if image.grad is None else image.grad + gradient
        return Losses(terms | {name: value.detach() for name, value in priors.items()})

    def _differentiate(self, image: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return content, match and style losses by name, and their gradient (1, 3, H, W)."""
        targets = [(layer, target) for layer, at in self.targets.items() for target in at]
        terms = {target.name: image.new_zeros(()) for _, target in targets}
        styles = {
            target.name: (layer, target.distance, target.weight)
            for layer, target in targets
            if isinstance(target.distance, StyleDistance)
        }
        sums = {name: self.scan.blank(layer, image) for name, (layer, _, _) in styles.items()}
        slopes: Slopes = {}
        losses = TileLosses(self.scan, self.targets, image, terms, sums, slopes)
        saved = self.passes.forward(image, losses.measure, losses.measure_and_feed)
        for name, (_, style, weight) in styles.items():
            leaves = Moments(*(moment.requires_grad_() for moment in sums[name]))
            with torch.enable_grad():
                loss = weight * style.measure.loss(leaves, style.target)
            slope = torch.autograd.grad(loss, leaves, allow_unused=True)
            terms[name], slopes[name] = loss.detach(), (slope[0], slope[1])
        gradient = torch.zeros_like(image, memory_format=torch.contiguous_format)
        self.passes.backward(saved, losses.feed, gradient)
        return terms, gradient
