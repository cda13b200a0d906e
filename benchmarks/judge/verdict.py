"""Compares the errors of a pastiche under VGG-19 with those of the pastiche that VGG-19 makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean

import torch
from torch import Tensor

from styletransfer.features import FeatureExtractor
from styletransfer.lessons.measure import table
from styletransfer.losses.moments import gram_matrix
from styletransfer.settings import CONTENT_LAYER, STYLE_LAYERS


@dataclass(frozen=True)
class Verdict:
    """A Verdict is the errors of one picture under VGG-19."""

    errors: dict[str, float]  # layer -> squared error over squared target; see `errors_under`
    image: str  # file name of the picture
    seconds: float = 0.0  # time of painting the picture
    factors: Mapping[str, float] = field(default_factory=dict)  # layer -> its factor in J, else 1

    @property
    def total(self) -> float:
        """The figure of merit J: the sum of all errors, each times its layer's factor."""
        return sum(self.factors.get(layer, 1.0) * error for layer, error in self.errors.items())


@torch.no_grad()
def errors_under(
    vgg19: FeatureExtractor, image: Tensor, content: Tensor, style: Tensor
) -> dict[str, float]:
    """Return layer -> error of `image` under VGG-19, relative to the target.

    The error is ||G - A||^2 / ||A||^2 for a style layer, with G and A the Gram matrices of image
    and style, and ||F - P||^2 / ||P||^2 for the content layer, with F and P the features of image
    and content. Pictures are (1, 3, H, W), sRGB in [0, 1]; `content` is as large as `image`.
    """
    features = vgg19(image, (*STYLE_LAYERS, CONTENT_LAYER))
    targets = vgg19(style, STYLE_LAYERS)
    errors = {
        layer: _relative(gram_matrix(features[layer]), gram_matrix(targets[layer]))
        for layer in STYLE_LAYERS
    }
    wanted = vgg19(content, [CONTENT_LAYER])[CONTENT_LAYER]
    errors[f"content {CONTENT_LAYER}"] = _relative(features[CONTENT_LAYER], wanted)
    return errors


def _relative(value: Tensor, target: Tensor) -> float:
    return ((value - target).square().sum() / target.square().sum()).item()


def gap_closed(verdicts: Mapping[str, Verdict], rival: str) -> float:
    """Return how much of the gap in J between content image and VGG-19's pastiche a rival closes.

    J is the sum of errors, `Verdict.total`. The result is (J(content) - J(rival)) / (J(content) -
    J(vgg19)): 0 for the unchanged content image, 1 for a pastiche as good as VGG-19's.
    """
    worst = verdicts["content"].total
    return (worst - verdicts[rival].total) / (worst - verdicts["vgg19"].total)


@dataclass(frozen=True)
class Judgement:
    """A Judgement is the verdicts on all pastiches of all pairs."""

    verdicts: dict[str, dict[str, Verdict]]  # pair -> rival -> verdict on the rival's pastiche
    tested: str  # name of the rival under test
    factors: Mapping[str, float]  # layer -> its factor in J; 1 for other layers

    @property
    def columns(self) -> list[str]:
        """Names of the rivals; the unchanged content image first, VGG-19 last."""
        return list(next(iter(self.verdicts.values())))


def as_json(judgement: Judgement) -> dict[str, object]:
    """Return the contents of judge.json: all verdicts, and mean and smallest gap closed."""
    verdicts = judgement.verdicts
    gaps = {
        rival: [gap_closed(row, rival) for row in verdicts.values()] for rival in judgement.columns
    }
    return {
        "factors": dict(judgement.factors),
        "gap_closed": {
            rival: {"mean": mean(values), "smallest": min(values)} for rival, values in gaps.items()
        },
        "pairs": {
            pair: {
                rival: {
                    "J": verdict.total,
                    "gap_closed": gap_closed(row, rival),
                    "errors": verdict.errors,
                    "seconds": verdict.seconds,
                    "image": verdict.image,
                }
                for rival, verdict in row.items()
            }
            for pair, row in verdicts.items()
        },
    }


def tables(judgement: Judgement) -> dict[str, str]:
    """Return heading -> Markdown table, with one column per rival and means over the pairs."""
    columns, verdicts = judgement.columns, list(judgement.verdicts.values())
    counted = ", ".join(f"{layer} counts {by:g}" for layer, by in judgement.factors.items())
    errors = [
        [layer, *(f"{mean(row[name].errors[layer] for row in verdicts):.4f}" for name in columns)]
        for layer in verdicts[0]["content"].errors
    ]
    gaps = {
        pair: [gap_closed(row, name) for name in columns]
        for pair, row in judgement.verdicts.items()
    }
    gaps["mean"] = [mean(column) for column in zip(*gaps.values(), strict=True)]
    painted = columns[1:]  # the first column is the content image
    seconds = [f"{mean(row[name].seconds for row in verdicts):.3g}" for name in painted]
    return {
        "error under VGG-19, mean over pairs": table(["layer", *columns], errors),
        "gap closed" + (counted and f"; {counted}"): table(
            ["pair", *columns],
            [[pair, *(f"{gap:.3f}" for gap in row)] for pair, row in gaps.items()],
        ),
        "seconds, mean over pairs": table(["", *painted], [["seconds", *seconds]]),
    }
