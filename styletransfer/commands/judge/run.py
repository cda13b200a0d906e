"""How good a feature network is, judged by VGG-19, whose losses it never sees meanwhile.

For each pair of pictures, one and the same job runs under every network. VGG-19 then says how far
each pastiche is from the style (Gram matrices at five layers) and from the content.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor

from styletransfer.config import JudgeConfig, StyleTransferConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.functions import gram_matrix
from styletransfer.modes import get_loss_mode
from styletransfer.objective.terms import loss_layers
from styletransfer.optimize.job import Job, load_pictures
from styletransfer.optimize.run import stylize
from styletransfer.pictures import images
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import atomic

STYLE_LAYERS = ("relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1")
CONTENT_LAYER = "relu4_2"
# The columns of every table: the worst picture, the two rivals, and the judge itself.
NETWORKS = ("content", "random", "bundled", "vgg19")


@dataclass(frozen=True)
class Verdict:
    """VGG-19's view of one pastiche.

    Attributes:
        errors: layer -> target-relative error: ||G - A||^2 / ||A||^2 for the style layers,
            ||F - P||^2 / ||P||^2 for the content layer.
        image: file name of the picture.
    """

    errors: dict[str, float]
    image: str

    @property
    def total(self) -> float:
        """J: the sum of all errors."""
        return sum(self.errors.values())


@torch.no_grad()
def judge(
    vgg19: FeatureExtractor, image: Tensor, content: Tensor, style: Tensor
) -> dict[str, float]:
    """Return layer -> target-relative error of `image` under VGG-19.

    Args:
        vgg19: with its trained weights, in float32.
        image: the pastiche (1, 3, H, W) in [0, 1].
        content: the content image, of the same size.
        style: the style image (1, 3, h, w).
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


def gap_closed(verdicts: Mapping[str, Verdict], network: str) -> float:
    """Return the share of the way from the content image to VGG-19's own pastiche.

    (J(content) - J(network)) / (J(content) - J(vgg19)): 0 for the unchanged content image, 1 for
    a network as good as VGG-19.
    """
    worst = verdicts["content"].total
    return (worst - verdicts[network].total) / (worst - verdicts["vgg19"].total)


def evaluate(
    config: JudgeConfig, folder: Path, report: Callable[[str], None]
) -> dict[str, dict[str, Verdict]]:
    """Stylise every pair under every network, judge, and write the pictures and figures.

    `folder` receives the pictures, `contact_sheet.png` (a row per pair, a column per network) and
    `evaluation.json`, which holds the returned verdicts and the gaps.

    Args:
        config: pairs, networks and the job.
        folder: where to write.
        report: called with one line per finished picture.

    Returns:
        "content x style" -> network -> verdict.

    Raises:
        UserError: no pair, or anything that `prepare` would refuse.
    """
    if not config.pairs:
        raise UserError("pairs is empty; name at least one content and style picture")
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    judging = build_features(config.vgg19).ended_at([*STYLE_LAYERS, CONTENT_LAYER])
    judging = optimize_for_inference(judging, device, torch.float32)
    rivals = {
        "random": replace(config.vgg19, weights="random"),
        "bundled": config.bundled,
        "vgg19": replace(config.vgg19, padding=config.bundled.padding),
    }
    layers = loss_layers(config.objective)
    networks = {
        name: optimize_for_inference(
            build_features(features, config.seed).ended_at(layers), device, dtype
        )
        for name, features in rivals.items()
    }
    verdicts: dict[str, dict[str, Verdict]] = {}
    rows: list[list[Tensor]] = []
    for pair in config.pairs:
        name = f"{Path(pair.content).stem} x {Path(pair.style).stem}"
        job = StyleTransferConfig(
            content=pair.content,
            style=pair.style,
            size=config.size,
            steps=config.steps,
            seed=config.seed,
            objective=config.objective,
            optimizer=config.optimizer,
        )
        content, style = load_pictures(job)
        row = {"content": images.fill_transparent(content)}
        for network, extractor in networks.items():
            mode = get_loss_mode(job.loss_mode.name)
            result = stylize(Job(job, extractor, mode, row["content"], style))
            row[network] = result.image
        verdicts[name] = {}
        for network, image in row.items():
            file = f"{name} {network}.png".replace(" ", "_")
            images.write(folder / file, image)
            on_device = (tensor.to(device) for tensor in (image, row["content"], style))
            verdicts[name][network] = Verdict(judge(judging, *on_device), file)
        rows.append(list(row.values()))
        report(f"{name}: gap closed {gap_closed(verdicts[name], 'bundled'):.3f}")
    images.write(folder / "contact_sheet.png", contact_sheet(rows, config.size // 2))
    with atomic(folder / "evaluation.json") as temporary:
        temporary.write_text(json.dumps(as_json(verdicts), indent=2) + "\n", encoding="utf-8")
    return verdicts


def as_json(verdicts: Mapping[str, Mapping[str, Verdict]]) -> dict[str, object]:
    """Return the verdicts with J and the gap closed, and the mean and smallest gap over pairs."""
    gaps = {
        network: [gap_closed(row, network) for row in verdicts.values()] for network in NETWORKS
    }
    return {
        "gap_closed": {
            network: {"mean": mean(values), "smallest": min(values)}
            for network, values in gaps.items()
        },
        "pairs": {
            pair: {
                network: {
                    "J": verdict.total,
                    "gap_closed": gap_closed(row, network),
                    "errors": verdict.errors,
                    "image": verdict.image,
                }
                for network, verdict in row.items()
            }
            for pair, row in verdicts.items()
        },
    }


def contact_sheet(rows: list[list[Tensor]], side: int) -> Tensor:
    """Return one picture (1, 3, H, W) of all pictures (1, 3, h, w), in square cells of `side`."""
    sheet = torch.ones(1, 3, side * len(rows), side * len(rows[0]))
    for top, row in enumerate(rows):
        for left, image in enumerate(row):
            height, width = images.scaled_size((image.shape[2], image.shape[3]), side - 4)
            y, x = top * side + (side - height) // 2, left * side + (side - width) // 2
            sheet[:, :, y : y + height, x : x + width] = images.resize(image, (height, width))
    return sheet
