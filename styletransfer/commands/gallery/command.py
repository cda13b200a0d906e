"""Show runs side by side, to choose from: `scripts/gallery.py outputs/sweep/FOLDER`.

Takes the folders of sweeps or of single runs of `train`, and writes gallery.html, a page that a
browser opens offline and prints.
"""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from styletransfer.commands.gallery import found
from styletransfer.commands.gallery.cards import Card, make_cards, make_pairs, ranks
from styletransfer.errors import UserError
from styletransfer.resources import templates
from styletransfer.settings import GalleryConfig, each
from styletransfer.settings.values import command
from styletransfer.system.files import atomic, check_outputs

# Of keys that change what the losses measure.
MEASURE = ("objective.", "features.", "content", "style", "size", "experiment")


def main(config: GalleryConfig, folder: Path) -> None:
    """Make the page, and say where it is; `folder`, for new runs, stays as it is."""
    summary, page = make_gallery(config)
    print(summary)
    print(page)


def make_gallery(config: GalleryConfig) -> tuple[str, Path]:
    """Write a page of the runs in and below folders (UserError: bad input).

    Return what they show in one line, and where the page is.
    """
    folders = [Path(folder) for folder in each(config.folders)]
    if not folders:
        raise UserError("name the folder of a sweep or of runs: styletransfer gallery FOLDER")
    name = "blind.html" if config.blind else "gallery.html"
    page = Path(config.output) if config.output else folders[0] / name
    if page.suffix.lower() != ".html":
        raise UserError(f"output={page} must end in .html")
    runs, unreadable = found.find_runs(folders)
    check_outputs([page], [file for run in runs for file in run.record.files])
    axes = found.differing(runs)
    varied = found.main_axes(runs, axes)
    title = found.shown(", ".join(folder.resolve().name or str(folder) for folder in folders))
    if config.blind:
        pairs = make_pairs(runs, varied, config.blind)
        summary = f"{len(pairs)} pair{'' if len(pairs) == 1 else 's'} of {config.blind}"
        text = draw_page("blind", title=title, pairs=pairs)
    else:
        cards = make_cards(runs, varied, axes)
        summary, sections = summarised(cards, unreadable), found.lay_out(varied, len(runs))
        text = draw_page(
            "page",
            title=title,
            summary=summary,
            cards=cards,
            sections=sections,
            ranks=ranks(cards, varied),
            unreadable=unreadable,
            comparable=not any(axis.key.startswith(MEASURE) for axis in axes),
        )
    with atomic(page) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return summary, page


def summarised(cards: Sequence[Card], unreadable: Sequence[tuple[str, str]]) -> str:
    """Return in one line how many runs there are."""
    without = sum(card.preview is None for card in cards)
    line = f"{len(cards)} run{'' if len(cards) == 1 else 's'}"
    if without:
        line += f", {without} without a picture"
    if unreadable:
        line += f"; not shown: {', '.join(name for name, _ in unreadable)}"
    return line


def draw_page(name: str, **values: Any) -> str:
    """Return a page as HTML, by its template's name; all is inside, and it may load nothing."""
    files = templates("styletransfer.commands.gallery")
    style, script = (files.get_template(one).render() for one in ("page.css", f"{name}.js"))
    # By https://www.w3.org/TR/CSP3/: only what has one of these hashes is obeyed.
    digests = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    styles, scripts = (f"'sha256-{base64.b64encode(code).decode()}'" for code in digests)
    return files.get_template(f"{name}.html").render(
        **values,
        command=command,
        shown=found.shown,
        style=style,
        script=script,
        policy=f"default-src 'none'; img-src data:; style-src {styles}; "
        f"script-src {scripts}; base-uri 'none'; form-action 'none'",
    )
