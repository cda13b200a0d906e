"""Show runs on one page, pictures above a table: `scripts/gallery.py outputs/sweep/FOLDER`.

The folders are those of sweeps or of single runs of `train`. The page, gallery.html, holds its
pictures; a browser opens it offline and prints it.
"""

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.convert import jpeg, small_picture
from styletransfer.resources import templates
from styletransfer.runs import folder as run_folder
from styletransfer.settings import GalleryConfig, TrainConfig, each
from styletransfer.settings.schemas import GROUPS, path_keys
from styletransfer.settings.values import command
from styletransfer.system.files import atomic, check_outputs

SIDE = 480  # longer side of a picture on the page, in pixels
QUALITY = 85  # JPEG quality of a picture, from 1 to 95
MAX_CHARACTERS = 300  # longest name, value or reason on the page


@dataclass(frozen=True)
class FoundRun:
    """One run of `train`."""

    name: str  # path of its folder, relative to the folder that was searched
    record: run_folder.RunFolder
    choices: Mapping[str, Any]  # group -> preset, such as "experiment" -> "bold"; may be empty
    picture: Path | None  # the pastiche, None if the run has not written it
    losses: Mapping[str, float]  # weighted, at the last step, with "total"; empty if unknown


def main(config: GalleryConfig, folder: Path) -> None:
    """Write the page, print a summary and the page's path; `folder` is not used."""
    for line in make_gallery(config):
        print(line)


def make_gallery(config: GalleryConfig) -> tuple[str, Path]:
    """Write a page of the runs in and below folders (UserError: bad input).

    Return a summary in one line, and the path of the page.
    """
    folders = [Path(folder) for folder in each(config.folders)]
    if not folders:
        raise UserError("name the folder of a sweep or of runs: styletransfer gallery FOLDER")
    page = Path(config.output) if config.output else folders[0] / "gallery.html"
    if page.suffix.lower() != ".html":
        raise UserError(f"output={page} must end in .html")
    runs, unreadable = find_runs(folders)
    check_outputs([page], [file for run in runs for file in run.record.files])
    columns = varied(runs)
    previews = [preview(run) for run in runs]
    without = sum(not uri for uri, _ in previews)
    summary = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    summary += f", {without} without a picture" if without else ""
    summary += f"; not shown: {', '.join(name for name, _ in unreadable)}" if unreadable else ""
    text = (
        templates("styletransfer.commands.gallery")
        .get_template("page.html")
        .render(
            title=printable(", ".join(path.resolve().name or str(path) for path in folders)),
            summary=summary,
            runs=runs,
            previews=previews,
            columns=columns,
            losses=[loss_sums(run) for run in runs],
            commands=[command(run.record.typed) for run in runs],
            statuses=[printable(run.record.status) for run in runs],
            unreadable=unreadable,
        )
    )
    with atomic(page) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return summary, page


def find_runs(folders: Sequence[Path]) -> tuple[list[FoundRun], list[tuple[str, str]]]:
    """Return the runs in and below folders, sorted by the numbers in names (UserError: no run).

    The second list holds the name of each run that cannot be read, and the reason.
    """
    runs: list[FoundRun] = []
    unreadable: list[tuple[str, str]] = []
    seen = set()
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder; name that of a sweep, or of a run of train")
        for path in _run_folders(folder):
            if (real := os.path.realpath(path)) in seen:
                continue
            seen.add(real)
            # The page's title names a single folder; else each run's name includes it.
            name = os.path.relpath(path, folder) if len(folders) == 1 else str(path)
            try:
                runs.append(_read(path, folder.resolve().name if name == "." else name))
            except UserError as error:
                unreadable.append((printable(name), printable(str(error))))
    if not seen:
        named = ", ".join(map(str, folders))
        raise UserError(f"there is no run of train in {named}; name a sweep's folder, or a run's")
    return runs, unreadable


def _run_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders of runs; skip hidden folders, and submitit's folders such as %j."""
    for name, inner, files in os.walk(folder):
        path, hydra = Path(name), run_folder.HYDRA
        # A run that failed early left only Hydra's record, which names the command.
        began = ".hydra" in inner and run_folder.recorded(path, hydra, "hydra", "job", "name")
        if run_folder.RECORD in files or began in ("train", None):
            yield path
        inner[:] = sorted((name for name in inner if name[0] not in ".%"), key=_natural)


def _natural(name: str) -> list[str | int]:
    """Return a sort key by which "9" comes before "10"."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _read(path: Path, name: str) -> FoundRun:
    if not (path / run_folder.RECORD).exists():
        reason = run_folder.read_error(path)
        default = f"it ended before its first step, and left no {run_folder.RECORD}"
        raise UserError(reason or default)
    record = run_folder.read_run(path)
    choices = run_folder.recorded(path, run_folder.HYDRA, "hydra", "runtime", "choices") or {}
    losses: Mapping[str, float] = {}
    for step in run_folder.read_steps(path):
        losses = step.losses
    return FoundRun(
        name=printable(name),
        record=record,
        choices={group: choices[group] for group in GROUPS if group in choices},
        picture=next(filter(os.path.isfile, (record.pastiche, record.output)), None),
        losses=losses,
    )


def varied(runs: Sequence[FoundRun]) -> dict[str, list[str]]:
    """Return key -> its value in each run, for the keys that differ between the runs.

    Keys of the command lines come first. Another key is left out if an earlier key determines its
    values: a preset, such as experiment, changes many keys at once, and stands for all of them.
    """
    columns: dict[str, list[Any]] = {}
    if all(run.choices for run in runs):
        columns |= {group: [run.choices.get(group) for run in runs] for group in GROUPS}
    settings = [run.record.settings for run in runs]
    known = dict.fromkeys(key for values in settings for key in values)
    columns |= {
        key: [values.get(key) for values in settings]
        for key in known
        if key not in run_folder.FREE_KEYS
    }
    texts = {key: _texts(key, values) for key, values in columns.items()}
    different = {key: values for key, values in texts.items() if len(set(values)) > 1}
    words = (word for run in runs for word in run.record.typed or ())
    typed = list(dict.fromkeys(word.lstrip("+").partition("=")[0] for word in words))
    shown = {key: different[key] for key in typed if key in different}
    for key, values in different.items():
        if not any(_determines(other, values) for other in shown.values()):
            shown[key] = values
    return shown


def _determines(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether equal values of the first key always come with equal values of the second."""
    return len(set(zip(first, second, strict=True))) == len(set(first))


def _texts(key: str, values: Sequence[Any]) -> list[str]:
    """Return values as text; file names without folders if they stay distinguishable."""
    texts = [_text(value) for value in values]
    if key not in path_keys(TrainConfig):
        return texts
    names = [_text(value, names=True) for value in values]
    return names if len(set(names)) == len(set(texts)) else texts


def _text(value: Any, *, names: bool = False) -> str:
    """Return a value, or a list's entries, as text; with `names`, files without folders."""
    if value is None:
        return "null"
    words = [word if isinstance(word, str) else json.dumps(word) for word in each(value)]
    return printable(", ".join(os.path.basename(word) or word if names else word for word in words))


def printable(text: str) -> str:
    """Return text on one line, at most MAX_CHARACTERS long, unprintable characters escaped."""
    short = text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in short)


def preview(run: FoundRun) -> tuple[str, str]:
    """Return (data URI of a run's picture, ""), or ("", the reason why there is no picture).

    The longer side is at most SIDE pixels; transparent pixels become white.
    """
    if run.picture is None:
        return "", f"no picture: the run is {printable(run.record.status)}"
    try:
        image = small_picture(images.read(run.picture), SIDE)
    except UserError as error:
        return "", printable(str(error))
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg(image, QUALITY)).decode()}", ""


def loss_sums(run: FoundRun) -> dict[str, float]:
    """Return kind, such as "style" or "total" -> the sum of a run's weighted losses of it."""
    sums: dict[str, float] = {}
    for name, loss in run.losses.items():
        kind = name.partition("/")[0]
        sums[kind] = sums.get(kind, 0.0) + loss
    return sums
