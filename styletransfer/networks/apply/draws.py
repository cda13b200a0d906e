"""Draws a random style image and strength for each file of a folder, to make varied data sets."""

import csv
import io
from os.path import lexists
from pathlib import Path
from random import Random

from styletransfer.errors import UserError
from styletransfer.job.sources import files_of
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.system.files import write_atomic


def draw(
    config: ApplyConfig, source: Path, target: Path, files: list[tuple[Path, Path]]
) -> dict[Path, tuple[str, float]]:
    """Return file -> (style image, strength), drawn at random; equal settings give equal results.

    Write them to manifest.csv, or for one of several parts to manifest.PART-of-PARTS.csv.
    (UserError if pastiches in `target` have other styles or strengths, or no random ones.)
    """
    styles, draws = files_of("style", config.style), {}
    rows = {"path": ["path", "style", "strength"]}
    for path, pastiche in files:
        dice = Random(f"{config.seed} {path.relative_to(source).as_posix()}")
        strength = dice.uniform(min(config.least_strength, config.strength), config.strength)
        style, strength = draws[path] = dice.choice(styles), round(strength, 3)
        name = pastiche.relative_to(target).as_posix()
        rows[name] = [name, Path(style).name, str(strength)]
    texts = (table.read_text("utf-8", "replace") for table in target.glob("manifest*.csv"))
    old = {row[0]: row for text in texts for row in csv.reader(io.StringIO(text)) if row}
    names = {pastiche.relative_to(target).as_posix() for _, pastiche in files if lexists(pastiche)}
    others = names - old.keys()  # these files were painted without random=true
    if config.parts == 1:
        others |= old.keys() - rows.keys()
    if others or any(old[name] != rows[name] for name in old.keys() & rows.keys()):
        advice = "choose another output, or the same files, styles, strengths and seed"
        raise UserError(f"{target} was painted with other draws, or without random=true; {advice}")
    part = "" if config.parts == 1 else f".{config.part}-of-{config.parts}"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows.values())
    write_atomic(target / f"manifest{part}.csv", text.getvalue().encode())
    return draws
