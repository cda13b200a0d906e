"""How good a feature network is, or a style network, judged by VGG-19.

For each pair of pictures, one and the same job runs under every feature network, and a style
network paints in one pass. VGG-19 then says how far each pastiche is from the style (Gram matrices
at five layers) and from the content; probes, which know no network, look for faults that losses do
not tell.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from styletransfer.commands.judge.pairs import Pair, check_pairs, load_pairs
from styletransfer.commands.judge.probes import probe
from styletransfer.commands.judge.rivals import Pastiche, rivals
from styletransfer.commands.judge.style_networks import pairs_of, read_networks
from styletransfer.commands.judge.verdict import (
    Judgement,
    Verdict,
    as_json,
    errors_under,
    gap_closed,
)
from styletransfer.config import CONTENT_LAYER, STYLE_LAYER_FACTORS, STYLE_LAYERS, JudgeConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.pictures import images
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import atomic, check_folder, to_json


def judge(config: JudgeConfig, folder: Path, report: Callable[[str], None]) -> Judgement:
    """Paint every pair in every way, judge, and write the pictures and figures.

    `folder` receives the pictures, `contact_sheet.png` (a row per pair, a column per way) and
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
    trained = read_networks(config, device, dtype)
    pairs = load_pairs(config, pairs_of(config, trained) if trained else config.pairs)
    vgg19, judged = build_features(config.vgg19), [*STYLE_LAYERS, CONTENT_LAYER]
    check_pairs(pairs, vgg19, judged)
    vgg19 = optimize_for_inference(vgg19.ended_at(judged), device, torch.float32)
    painters = rivals(config, trained, device, dtype)
    check_folder(folder / "judge.json")
    if trained:
        judgement = Judgement({}, {}, tested="network", factors=STYLE_LAYER_FACTORS)
    else:
        judgement = Judgement({}, {}, tested="bundled", factors={})
    rows: list[list[Tensor]] = []
    for pair in pairs:
        row = {"content": Pastiche(pair.content, 0.0)}
        row |= {name: paint(pair) for name, paint in painters.items()}
        judgement.verdicts[pair.name] = judge_pair(vgg19, pair, row, judgement.factors)
        seen = {"style": pair.style, **{name: each.image for name, each in row.items()}}
        judgement.probes[pair.name] = {name: probe(image) for name, image in seen.items()}
        for name, each in row.items():
            images.write(folder / pair.file(name), each.image)
        rows.append([each.image for each in row.values()])
        gap = gap_closed(judgement.verdicts[pair.name], judgement.tested)
        report(f"{pair.name}: gap closed {gap:.3f}")
    images.write(folder / "contact_sheet.png", contact_sheet(rows, config.size // 2))
    with atomic(folder / "judge.json") as temporary:
        temporary.write_text(to_json(as_json(judgement), indent=2) + "\n", encoding="utf-8")
    return judgement


def judge_pair(
    vgg19: FeatureExtractor, pair: Pair, row: dict[str, Pastiche], factors: Mapping[str, float]
) -> dict[str, Verdict]:
    """Return who painted -> VGG-19's verdict on the picture.

    Args:
        vgg19: the judge, on its device.
        pair: what the pictures were made of.
        row: who painted -> the picture, of the content's size.
        factors: see `Verdict`.

    Raises:
        UserError: VGG-19 finds its own pastiche no better than the content image.
    """
    device = next(vgg19.parameters()).device
    found = {}
    for name, pastiche in row.items():
        on_device = (each.to(device) for each in (pastiche.image, pair.content, pair.style))
        errors = errors_under(vgg19, *on_device)
        found[name] = Verdict(errors, pair.file(name), pastiche.seconds, factors)
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
