"""Show runs on one page, pictures above a table: `scripts/gallery.py outputs/sweep/FOLDER`.

The folders are those of sweeps or of single runs of `train`. The page, gallery.html, contains its
pictures, so a browser can show and print it offline.
"""

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.convert import jpeg, small_picture
from styletransfer.resources import templates
from styletransfer.runs import FREE_KEYS, RECORD
from styletransfer.runs.folder import RunFolder, last_losses, read_run
from styletransfer.settings import each
from styletransfer.settings.pictures import GalleryConfig
from styletransfer.settings.values import command
from styletransfer.system.files import atomic, check_outputs

SIDE = 480  # longer side of a picture on the page, in pixels
QUALITY = 85  # JPEG quality of a picture, from 1 to 95
MAX_CHARACTERS = 300  # longest name, value or error message on the page; longer ones are cut


@dataclass(frozen=True)
class FoundRun:
    """A FoundRun is one run of `train` that the page shows."""

    name: str  # path of its folder, relative to the folder that was searched
    record: RunFolder  # the contents of its run.json
    # Name of a loss, also "total" -> its weighted value at the last step; empty if unknown.
    losses: Mapping[str, float]

    @property
    def settings(self) -> dict[str, str]:
        """Key -> value on the run's command line, without the keys that change no pixel."""
        words = (word.lstrip("+").partition("=") for word in self.record.typed or ())
        return {key: printable(value) for key, _, value in words if key not in FREE_KEYS}


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
    """Return the runs in and below folders, "9" before "10" (UserError: there is no run).

    The second list holds (name, reason) of each run that cannot be read.
    """
    runs: dict[str, FoundRun] = {}
    unreadable: list[tuple[str, str]] = []
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder; name that of a sweep, or of a run of train")
        for path in _run_folders(folder):
            # The page's title names the folder if it is the only one; else each run's name does.
            name = os.path.relpath(path, folder) if len(folders) == 1 else str(path)
            name = printable(folder.resolve().name if name == "." else name)
            try:
                found = FoundRun(name, read_run(path), last_losses(path))
                runs.setdefault(os.path.realpath(path), found)
            except UserError as error:
                unreadable.append((name, printable(str(error))))
    if not runs and not unreadable:
        named = ", ".join(map(str, folders))
        raise UserError(f"there is no run of train in {named}; name a sweep's folder, or a run's")
    return [*runs.values()], unreadable


def _run_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders that hold run.json; skip hidden ones, and a job scheduler's such as %j."""
    for name, inner, files in os.walk(folder):
        if RECORD in files:
            yield Path(name)
        inner[:] = sorted((name for name in inner if name[0] not in ".%"), key=_natural)


def _natural(name: str) -> list[str | int]:
    """Return a sort key by which "9" comes before "10"."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def varied(runs: Sequence[FoundRun]) -> dict[str, list[str]]:
    """Return key -> its value in each run, for the keys whose values differ between runs."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    columns = {key: [run.settings.get(key, "") for run in runs] for key in keys}
    return {key: values for key, values in columns.items() if len(set(values)) > 1}


def printable(text: str) -> str:
    """Return `text` cut to MAX_CHARACTERS, with line breaks and other unprintables escaped."""
    short = text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in short)


def preview(run: FoundRun) -> tuple[str, str]:
    """Return (data URI of a run's picture, ""), or ("", the reason why there is no picture).

    The longer side is at most SIDE pixels; transparent pixels become white.
    """
    record = run.record
    path = next(filter(os.path.isfile, (record.pastiche, record.output)), None)
    if path is None:
        return "", f"no picture: the run is {printable(record.status)}"
    try:
        image = small_picture(images.read(path), SIDE)
    except UserError as error:
        return "", printable(str(error))
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg(image, QUALITY)).decode()}", ""


def loss_sums(run: FoundRun) -> dict[str, float]:
    """Return kind of loss, such as "style" or "total" -> sum of its weighted losses in the run."""
    sums: dict[str, float] = {}
    for name, loss in run.losses.items():
        kind = name.partition("/")[0]
        sums[kind] = sums.get(kind, 0.0) + loss
    return sums
