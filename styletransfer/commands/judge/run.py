"""How good a feature network is, judged by VGG-19, whose losses it never sees meanwhile.

For each pair of pictures, one and the same job runs under every network. VGG-19 then says how far
each pastiche is from the style (Gram matrices at five layers) and from the content; probes, which
know no network, look for faults that losses do not tell.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from styletransfer.commands.judge.pairs import Pair, check_pairs, load_pairs
from styletransfer.commands.judge.probes import probe
from styletransfer.commands.judge.verdict import (
    Judgement,
    Verdict,
    as_json,
    errors_under,
    gap_closed,
)
from styletransfer.config import CONTENT_LAYER, STYLE_LAYERS, JudgeConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.modes import get_loss_mode
from styletransfer.objective.terms import loss_layers
from styletransfer.optimize.job import Job
from styletransfer.optimize.run import stylize
from styletransfer.pictures import images
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import atomic, check_folder, to_json


def judge(config: JudgeConfig, folder: Path, report: Callable[[str], None]) -> Judgement:
    """Stylise every pair under every network, judge, and write the pictures and figures.

    `folder` receives the pictures, `contact_sheet.png` (a row per pair, a column per network) and
    `judge.json`, which holds what is returned, and the gaps.

    Args:
        config: pairs, networks and the job.
        folder: where to write.
        report: called with one line per finished pair.

    Raises:
        UserError: bad input, before anything is written; or a run that gave up.
        KeyboardInterrupt: Ctrl-C. The pictures of finished pairs stay.
    """
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    pairs = load_pairs(config)
    vgg19, judged = build_features(config.vgg19), [*STYLE_LAYERS, CONTENT_LAYER]
    check_pairs(pairs, vgg19, judged)
    vgg19 = optimize_for_inference(vgg19.ended_at(judged), device, torch.float32)
    networks = build_networks(config, device, dtype)
    check_folder(folder / "judge.json")
    judgement = Judgement({}, {})
    rows: list[list[Tensor]] = []
    for pair in pairs:
        row = {"content": pair.content}
        row |= {name: pastiche(network, name, pair) for name, network in networks.items()}
        judgement.verdicts[pair.name] = verdicts = judge_pair(vgg19, pair, row)
        seen = {"style": pair.style, **row}
        judgement.probes[pair.name] = {name: probe(image) for name, image in seen.items()}
        for name, image in row.items():
            images.write(folder / pair.file(name), image)
        rows.append(list(row.values()))
        report(f"{pair.name}: gap closed {gap_closed(verdicts, 'bundled'):.3f}")
    images.write(folder / "contact_sheet.png", contact_sheet(rows, config.size // 2))
    with atomic(folder / "judge.json") as temporary:
        temporary.write_text(to_json(as_json(judgement), indent=2) + "\n", encoding="utf-8")
    return judgement


def build_networks(
    config: JudgeConfig, device: torch.device, dtype: torch.dtype
) -> dict[str, FeatureExtractor]:
    """Return name -> network that stylises: a random VGG-19, the one under test, and VGG-19.

    Raises:
        UserError: see `build_features`, and an unknown layer.
    """
    rivals = {
        "random": replace(config.vgg19, weights="random"),
        "bundled": config.bundled,
        "vgg19": replace(config.vgg19, padding=config.bundled.padding),
    }
    layers = loss_layers(config.objective)
    return {
        name: optimize_for_inference(
            build_features(features, config.seed).ended_at(layers), device, dtype
        )
        for name, features in rivals.items()
    }


def pastiche(extractor: FeatureExtractor, name: str, pair: Pair) -> Tensor:
    """Return the pastiche (1, 3, H, W) of a pair under a network, float32, on the CPU.

    Raises:
        UserError: the run gave up.
        KeyboardInterrupt: Ctrl-C; an unfinished picture is not judged.
    """
    mode = get_loss_mode(pair.config.loss_mode.name)
    result = stylize(Job(pair.config, extractor, mode, pair.loaded.pictures))
    return result.finished(f"{pair.name} under {name}").image


def judge_pair(
    vgg19: FeatureExtractor, pair: Pair, pictures: dict[str, Tensor]
) -> dict[str, Verdict]:
    """Return network -> VGG-19's verdict on its picture.

    Args:
        vgg19: the judge, on its device.
        pair: what the pictures were made of.
        pictures: network -> (1, 3, H, W), of the content's size.

    Raises:
        UserError: VGG-19 finds its own pastiche no better than the content image.
    """
    device = next(vgg19.parameters()).device
    found = {}
    for name, image in pictures.items():
        on_device = (each.to(device) for each in (image, pair.content, pair.style))
        found[name] = Verdict(errors_under(vgg19, *on_device), pair.file(name))
    own, unchanged = found["vgg19"].total, found["content"].total
    if not own < unchanged:
        raise UserError(
            f"{pair.name}: VGG-19's own pastiche is no better (J = {own:.3g}) than the content "
            f"picture ({unchanged:.3g}), so there is no gap to close; choose other pictures, or "
            "more steps or style weight"
        )
    return found


def contact_sheet(rows: list[list[Tensor]], side: int) -> Tensor:
    """Return one picture (1, 3, H, W) of all pictures (1, 3, h, w), in square cells of `side`."""
    sheet = torch.ones(1, 3, side * len(rows), side * len(rows[0]))
    for top, row in enumerate(rows):
        for left, image in enumerate(row):
            height, width = images.scaled_size((image.shape[2], image.shape[3]), side - 4)
            y, x = top * side + (side - height) // 2, left * side + (side - width) // 2
            sheet[:, :, y : y + height, x : x + width] = images.resize(image, (height, width))
    return sheet
