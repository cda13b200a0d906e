"""A gallery made: folders in, a page and a contact sheet out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from styletransfer.commands.gallery.axes import Axis, differing, main_axes
from styletransfer.commands.gallery.card import make_cards, ranks
from styletransfer.commands.gallery.layout import lay_out
from styletransfer.commands.gallery.page import Gallery, draw_page
from styletransfer.commands.gallery.runs import Run, find_runs
from styletransfer.commands.gallery.sheet import draw_sheet
from styletransfer.config import GalleryConfig, each
from styletransfer.errors import UserError
from styletransfer.system.files import atomic, check_folder

# Of keys that change what the losses measure.
MEASURE = ("objective.", "features.", "content", "style", "size", "experiment")


@dataclass(frozen=True)
class Made:
    """What `gallery` leaves behind: the page, the contact sheet, and a line on what they show."""

    page: Path
    sheet: Path
    summary: str


def gallery(config: GalleryConfig) -> Made:
    """Write a page and a contact sheet of the runs in and below folders.

    Runs without a picture are shown as such, and damaged ones are named.

    Raises:
        UserError: bad input, before anything is written; or a file cannot be written.
    """
    folders = [Path(folder) for folder in each(config.folders)]
    if not folders:
        raise UserError("name the folder of a sweep or of runs: styletransfer gallery FOLDER")
    page = Path(config.output) if config.output else folders[0] / "gallery.html"
    if page.suffix.lower() != ".html":
        raise UserError(f"output={page} must end in .html; the contact sheet gets the same name")
    sheet = page.with_suffix(".png")
    runs, unreadable = find_runs(folders)
    for path in (page, sheet):
        check_folder(path)
    _check_sheet(sheet, runs)
    every = differing(runs)
    main = main_axes(runs, every)
    cards = make_cards(runs, main, every)
    made = Gallery(
        title=", ".join(folder.resolve().name or str(folder) for folder in folders),
        cards=cards,
        sections=lay_out(main, len(runs)),
        ranks=ranks(cards, main),
        unreadable=unreadable,
        comparable=_comparable(every),
    )
    with atomic(sheet) as temporary:
        draw_sheet(made).save(temporary, format="PNG")
    with atomic(page) as temporary:
        temporary.write_text(draw_page(made), encoding="utf-8")
    return Made(page, sheet, made.summary)


def _comparable(axes: Sequence[Axis]) -> bool:
    """Tell whether the losses of all runs measure the same thing."""
    return not any(axis.key.startswith(MEASURE) for axis in axes)


def _check_sheet(sheet: Path, runs: Sequence[Run]) -> None:
    """Check that the sheet would replace no run's picture.

    Raises:
        UserError: it would.
    """
    pictures = [run.picture for run in runs if run.picture is not None]
    if sheet.exists() and any(picture.samefile(sheet) for picture in pictures):
        raise UserError(
            f"output={sheet.with_suffix('.html')} would overwrite {sheet}, the picture "
            "of a run; choose another name"
        )
