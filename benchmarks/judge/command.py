"""Judge the bundled feature network, or style networks, by VGG-19: `python -m benchmarks.judge`.

For each pair of pictures, the same job runs with a random VGG-19, the bundled network and the
trained VGG-19 as feature extractor; or, with `judged=networks networks=FILE`, a style network and
the optimiser each paint the pair. VGG-19 then measures how far each pastiche is from the style
image (Gram matrices at five layers) and from the content image.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.judge.config import JudgeConfig
from benchmarks.judge.pairs import Pair, check_pairs, load_pairs
from benchmarks.judge.rivals import Pastiche, pairs_of, read_networks, rivals
from benchmarks.judge.verdict import Judgement, Verdict, as_json, errors_under, gap_closed, tables
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.pictures import images
from styletransfer.runs.claim import claimed
from styletransfer.settings import CONTENT_LAYER, STYLE_LAYER_FACTORS, STYLE_LAYERS
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import atomic, check_outputs, to_json


def main(config: JudgeConfig, folder: Path) -> None:
    """Judge the bundled feature network, or style networks, by VGG-19."""
    judgement = judge(config, folder, print)
    for heading, text in tables(judgement).items():
        print(f"\n{heading}\n{text}")
    for name in ("judge.json", "contact_sheet.png"):
        print(folder / name)


def judge(config: JudgeConfig, folder: Path, report: Callable[[str], None]) -> Judgement:
    """Paint every pair of content and style with every rival; measure the pastiches with VGG-19.

    A rival is one way to paint: by a style network, or by optimisation with a feature network.
    `folder` receives the pictures, `contact_sheet.png` (a row per pair, a column per rival) and
    `judge.json`, with the returned results. `report` is called with one line per finished pair.
    (UserError: bad input, before anything is written; or a run that gave up; KeyboardInterrupt:
    Ctrl-C. The pictures of finished pairs stay.)
    """
    device = choose_device(config.device)
    dtype = choose_precision(config.precision, device)
    known = read_networks(config, device, dtype)
    pairs = load_pairs(config, pairs_of(config, known) if known else config.pairs)
    vgg19, judged = build_features(config.vgg19), [*STYLE_LAYERS, CONTENT_LAYER]
    check_pairs(pairs, vgg19, judged)
    vgg19 = optimize_for_inference(vgg19.ended_at(judged), device, torch.float32)
    painters = rivals(config, known, device, dtype)
    names = ["judge.json", "contact_sheet.png"]
    names += [pair.file(name) for pair in pairs for name in ("content", *painters)]
    check_outputs([folder / name for name in names], [])
    judgement = Judgement({}, "bundled", {})
    if known:
        judgement = Judgement({}, "network", STYLE_LAYER_FACTORS)
    rows: list[list[Tensor]] = []
    with claimed(folder, names):
        for pair in pairs:
            row = {"content": Pastiche(pair.content, 0.0)}
            row |= {name: paint(pair) for name, paint in painters.items()}
            judgement.verdicts[pair.name] = judge_pair(vgg19, pair, row, judgement.factors)
            pictures = {name: pastiche.image for name, pastiche in row.items()}
            for name, image in pictures.items():
                images.write(folder / pair.file(name), image)
            rows.append(list(pictures.values()))
            gap = gap_closed(judgement.verdicts[pair.name], judgement.tested)
            report(f"{pair.name}: gap closed {gap:.3f}")
        images.write(folder / "contact_sheet.png", contact_sheet(rows, config.size // 2))
        with atomic(folder / "judge.json") as temporary:
            temporary.write_text(to_json(as_json(judgement), indent=2) + "\n", encoding="utf-8")
    return judgement


def judge_pair(
    vgg19: FeatureExtractor, pair: Pair, row: Mapping[str, Pastiche], factors: Mapping[str, float]
) -> dict[str, Verdict]:
    """Return rival -> the errors of its pastiche under VGG-19, for one pair of content and style.

    (UserError: by these errors, VGG-19's own pastiche is no better than the content image.)
    """
    device = next(vgg19.parameters()).device
    content, style = pair.content.to(device), pair.style.to(device)
    verdicts = {
        name: Verdict(
            errors_under(vgg19, pastiche.image.to(device), content, style),
            pair.file(name),
            pastiche.seconds,
            factors,
        )
        for name, pastiche in row.items()
    }
    own, unchanged = verdicts["vgg19"].total, verdicts["content"].total
    if not own < unchanged:
        raise UserError(
            f"{pair.name}: VGG-19's own pastiche is no better (J = {own:.3g}) than the content "
            f"picture ({unchanged:.3g}), so there is no gap to close; choose other pictures, or "
            "more steps or style weight"
        )
    return verdicts


def contact_sheet(rows: list[list[Tensor]], side: int) -> Tensor:
    """Return a sheet (1, 3, H, W) of all pictures (1, 3, h, w), in cells of `side` pixels."""
    sheet = torch.ones(1, 3, side * len(rows), side * len(rows[0]))
    for top, row in enumerate(rows):
        for left, image in enumerate(row):
            height, width = images.scaled_size(images.size_of(image), side - 4)
            y, x = top * side + (side - height) // 2, left * side + (side - width) // 2
            sheet[:, :, y : y + height, x : x + width] = images.resize(image, (height, width))
    return sheet
