"""Show runs side by side, to choose from: `scripts/gallery.py outputs/sweep/FOLDER`.

Takes the folders of sweeps or of single runs of `train`, and writes gallery.html, a page that a
browser opens offline, and gallery.png, a contact sheet.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from styletransfer.commands.gallery import found
from styletransfer.commands.gallery.cards import Card, draw_sheet, make_cards, ranks
from styletransfer.config import GalleryConfig, each
from styletransfer.errors import UserError
from styletransfer.resources import templates
from styletransfer.settings.values import command
from styletransfer.system.files import atomic, check_outputs

# Of keys that change what the losses measure.
MEASURE = ("objective.", "features.", "content", "style", "size", "experiment")


@dataclass(frozen=True)
class Gallery:
    """What the page and the sheet show."""

    title: str  # names the folders
    cards: Sequence[Card]  # one for each run
    sections: Sequence[found.Section]  # where each stands
    ranks: dict[str, list[int]]  # what can be sorted by -> the place of each card
    unreadable: Sequence[tuple[str, str]]  # runs that cannot be shown, and why
    comparable: bool  # all runs have the same objective and network, so that their losses compare

    @property
    def summary(self) -> str:
        """How many runs there are, in one line."""
        count = len(self.cards)
        shown = sum(card.preview is not None for card in self.cards)
        line = f"{count} run{'' if count == 1 else 's'}"
        if shown < count:
            line += f", {count - shown} without a picture"
        if self.unreadable:
            line += f"; not shown: {', '.join(name for name, _ in self.unreadable)}"
        return line


def main(config: GalleryConfig, folder: Path) -> None:
    """Make page and sheet, and say where they are; `folder`, for new runs, stays as it is."""
    gallery, page = make_gallery(config)
    print(gallery.summary)
    print(page.with_suffix(".png"))
    print(page)


def make_gallery(config: GalleryConfig) -> tuple[Gallery, Path]:
    """Write a page and a contact sheet of the runs in and below folders (UserError: bad input)."""
    folders = [Path(folder) for folder in each(config.folders)]
    if not folders:
        raise UserError("name the folder of a sweep or of runs: styletransfer gallery FOLDER")
    page = Path(config.output) if config.output else folders[0] / "gallery.html"
    if page.suffix.lower() != ".html":
        raise UserError(f"output={page} must end in .html; the contact sheet gets the same name")
    sheet = page.with_suffix(".png")
    runs, unreadable = found.find_runs(folders)
    check_outputs((page, sheet), [file for run in runs for file in run.record.files])
    axes = found.differing(runs)
    varied = found.main_axes(runs, axes)
    cards = make_cards(runs, varied, axes)
    gallery = Gallery(
        title=found.shown(", ".join(folder.resolve().name or str(folder) for folder in folders)),
        cards=cards,
        sections=found.lay_out(varied, len(runs)),
        ranks=ranks(cards, varied),
        unreadable=unreadable,
        comparable=not any(axis.key.startswith(MEASURE) for axis in axes),
    )
    with atomic(sheet) as temporary:
        draw_sheet(gallery.title, gallery.sections, cards).save(temporary, format="PNG")
    with atomic(page) as temporary:
        temporary.write_text(draw_page(gallery), encoding="utf-8", errors="backslashreplace")
    return gallery, page


def draw_page(gallery: Gallery) -> str:
    """Return the page as HTML; everything is inside it, and it may load nothing else."""
    files = templates("styletransfer.commands.gallery")
    style, script = (files.get_template(name).render() for name in ("page.css", "page.js"))
    # By https://www.w3.org/TR/CSP3/: only what has one of these hashes is obeyed.
    digests = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    styles, scripts = (f"'sha256-{base64.b64encode(code).decode()}'" for code in digests)
    return files.get_template("page.html").render(
        gallery=gallery,
        command=command,
        shown=found.shown,
        style=style,
        script=script,
        policy=f"default-src 'none'; img-src data:; style-src {styles}; "
        f"script-src {scripts}; base-uri 'none'; form-action 'none'",
    )
