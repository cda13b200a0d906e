"""Write one page of runs, pictures above a table: `scripts/gallery.py outputs/sweep/FOLDER`.

Several folders may be named. Each is that of a sweep or of a single run of `train`. The page,
gallery.html, contains its pictures, so a browser can show and print it offline.
"""

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.convert import jpeg, small_picture
from styletransfer.runs.folder import RunFolder, last_losses, read_run
from styletransfer.runs.record import FREE_KEYS, RECORD
from styletransfer.runs.settings import GalleryConfig
from styletransfer.settings import each
from styletransfer.settings.values import command_line
from styletransfer.system.files import atomic, check_outputs, output_locked
from styletransfer.system.templates import templates

SIDE = 480  # longer side of a picture on the page, in pixels
QUALITY = 85  # JPEG quality of a picture, from 1 to 95


@dataclass(frozen=True)
class FoundRun:
    """A FoundRun is one run of `train` that the page shows."""

    name: str  # path of the run's folder, relative to the searched folder if only one is searched
    record: RunFolder  # the contents of its run.json
    # Kind of loss, such as "style" or "total" -> sum of its weighted losses at the last step.
    losses: Mapping[str, float]

    @cached_property
    def settings(self) -> dict[str, str]:
        """Key -> value on the run's command line, without the keys in FREE_KEYS."""
        words = (word.lstrip("+").partition("=") for word in self.record.typed or ())
        return {key: value for key, _, value in words if key not in FREE_KEYS}

    @property
    def command(self) -> str:
        """The run's command line for a shell; "" if it is not recorded."""
        return command_line(self.record.typed)

    @cached_property
    def preview(self) -> tuple[str, str]:
        """(data URI of the run's picture, ""), or ("", the reason why there is no picture).

        The longer side is at most SIDE pixels; transparent pixels become white.
        """
        record = self.record
        path = next(filter(os.path.isfile, (record.pastiche, record.output)), None)
        if path is None:
            return "", f"no picture: the run is {record.status}"
        try:
            image = small_picture(images.read(path), SIDE)
        except UserError as error:
            return "", str(error)
        return f"data:image/jpeg;base64,{base64.b64encode(jpeg(image, QUALITY)).decode()}", ""


def main(config: GalleryConfig, folder: Path) -> None:
    """Write a page of the runs in and below folders; print a summary and the page's path."""
    folders = [Path(name) for name in each(config.folders)]
    if not folders:
        raise UserError("name the folder of a sweep or of runs: styletransfer gallery FOLDER")
    page = Path(config.output) if config.output else folders[0] / "gallery.html"
    if page.suffix.lower() != ".html":
        raise UserError(f"output={page} must end in .html")
    runs, unreadable = find_runs(folders)
    check_outputs([page], [file for run in runs for file in run.record.files])
    with output_locked(page):
        summary = _write(page, folders, runs, unreadable)
    print("".join(filter(str.isprintable, summary)), page, sep="\n")


def _write(
    page: Path, folders: list[Path], runs: list[FoundRun], unreadable: list[tuple[str, str]]
) -> str:
    """Write the page of the runs that were found in `folders`; return its summary, one line."""
    without = sum(not uri for uri, _ in (run.preview for run in runs))
    summary = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    summary += f", {without} without a picture" if without else ""
    summary += f"; not shown: {', '.join(name for name, _ in unreadable)}" if unreadable else ""
    title = ", ".join(path.resolve().name or str(path) for path in folders)
    template = templates("styletransfer.runs.gallery").get_template("page.html")
    text = template.render(
        title=title, summary=summary, runs=runs, columns=varied(runs), unreadable=unreadable
    )
    with atomic(page) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return summary


def find_runs(folders: Sequence[Path]) -> tuple[list[FoundRun], list[tuple[str, str]]]:
    """Return the runs in and below `folders`, for each folder sorted by name, "9" before "10".

    The second list holds (name, reason) of each run that cannot be read. (UserError if a path is no
    folder, or if there is no run.)
    """
    runs: dict[str, FoundRun] = {}
    unreadable: list[tuple[str, str]] = []
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder; name that of a sweep, or of a run of train")
        for path in _run_folders(folder):
            # The title names a single folder. With several, each run's name includes its folder.
            name = os.path.relpath(path, folder) if len(folders) == 1 else str(path)
            name = folder.resolve().name if name == "." else name
            try:
                found = FoundRun(name, read_run(path), sums(last_losses(path)))
                runs.setdefault(os.path.realpath(path), found)
            except UserError as error:
                unreadable.append((name, str(error)))
    if not runs and not unreadable:
        named = ", ".join(map(str, folders))
        raise UserError(f"there is no run of train in {named}; name a sweep's folder, or a run's")
    return [*runs.values()], unreadable


def _run_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders with run.json; skip names that begin with "." or "%", such as %j."""
    for name, inner, files in os.walk(folder):
        if RECORD in files:
            yield Path(name)
        inner[:] = sorted((name for name in inner if name[0] not in ".%"), key=_natural)


def _natural(name: str) -> list[str | int]:
    """Return a sort key by which "9" comes before "10"."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def varied(runs: Sequence[FoundRun]) -> list[str]:
    """Return the keys whose values differ between runs."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    return [key for key in keys if len({run.settings.get(key, "") for run in runs}) > 1]


def sums(losses: Mapping[str, float]) -> dict[str, float]:
    """Return kind of loss, such as "style" or "total" -> sum of its weighted losses."""
    sums: dict[str, float] = {}
    for name, loss in losses.items():
        kind = name.partition("/")[0]
        sums[kind] = sums.get(kind, 0.0) + loss
    return sums
