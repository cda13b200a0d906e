"""Fills the templates: one page that a browser opens offline."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from styletransfer.commands.gallery.card import Card
from styletransfer.commands.gallery.layout import Section
from styletransfer.commands.gallery.runs import Unreadable
from styletransfer.resources import templates

TEMPLATES = templates("styletransfer.commands.gallery")


@dataclass(frozen=True)
class Gallery:
    """What the page and the sheet show.

    Attributes:
        title: names the folders.
        cards: one for each run.
        sections: where each stands.
        ranks: what can be sorted by -> the place of each card.
        unreadable: folders of runs that cannot be shown.
        comparable: all runs have the same objective and network, so that their losses compare.
    """

    title: str
    cards: Sequence[Card]
    sections: Sequence[Section]
    ranks: dict[str, list[int]]
    unreadable: Sequence[Unreadable]
    comparable: bool

    @property
    def summary(self) -> str:
        """How many runs there are, in one line."""
        count = len(self.cards)
        shown = sum(card.preview is not None for card in self.cards)
        line = f"{count} run{'' if count == 1 else 's'}"
        if shown < count:
            line += f", {count - shown} without a picture"
        if self.unreadable:
            line += f"; not shown: {', '.join(each.name for each in self.unreadable)}"
        return line


def draw_page(gallery: Gallery) -> str:
    """Return the page as HTML; everything is inside it, and it may load nothing else."""
    style, script = (TEMPLATES.get_template(name).render() for name in ("page.css", "page.js"))
    return TEMPLATES.get_template("page.html").render(
        gallery=gallery,
        style=style,
        script=script,
        # By https://www.w3.org/TR/CSP3/: only what has one of these hashes is obeyed.
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'",
    )


def _hash(text: str) -> str:
    code = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{code}'"
