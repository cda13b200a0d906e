"""The function that style transfer minimises, and its gradient.

`Run` calls `Objective.evaluate` before each step of the optimiser. Neither `Run` nor the optimiser
needs to know the loss mode or the precision.
"""

from collections import OrderedDict
from dataclasses import replace
from functools import partial

from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.tensors import accumulate_dtype
from styletransfer.losses import LossMode, Term
from styletransfer.objective.all_targets import all_targets, whole_reader
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.evaluation import Losses, prior_losses, total
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.targets import Targets


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
        self.mode, self.anchor = mode, pictures.anchor
        self.priors = partial(prior_losses, criterion.tv_weight, pictures.anchor)
        reader = whole_reader(extractor, criterion, pictures)
        targets = all_targets(criterion, reader, pictures, styles)
        if criterion.seamless:  # after the targets, because style images are not seamless
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
            # A kept `loss` would keep its graph, and with `retain_graph=True` the saved tensors.
            del term.module.loss
        return Losses(losses)

    def weights_as_tensors(self) -> None:
        """Make each loss's weight a tensor beside its target, so that `state` has it."""
        for index, term in enumerate(self.terms):
            target = next(term.module.buffers())
            weight = target.new_full((), float(term.weight), dtype=accumulate_dtype(target.dtype))
            self.terms[index] = replace(term, weight=weight)

    def state(self) -> dict[str, Tensor]:
        """Return name -> tensor that an evaluation reads, besides the picture and the network.

        Objectives of one network, loss mode and criterion, for pictures of one size, compute the
        same operations if the names and shapes in their states are equal.
        """
        anchor = self.anchor
        found = {} if anchor is None else {"anchor": anchor.target, "sure": anchor.weights}
        for term in self.terms:
            found |= {f"{term.name} {name}": x for name, x in term.module.named_buffers()}
            if isinstance(term.weight, Tensor):
                found[term.name] = term.weight
        return found
