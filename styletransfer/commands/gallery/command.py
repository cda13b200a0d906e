"""Show runs side by side, to choose from: `scripts/gallery.py outputs/sweep/FOLDER`.

Takes the folders of sweeps or of single runs of `train`, and writes gallery.html, a page that a
browser opens offline, and gallery.png, a contact sheet.
"""

from pathlib import Path

from styletransfer.commands.gallery.run import gallery
from styletransfer.config import GalleryConfig


def main(config: GalleryConfig, folder: Path) -> None:
    """Make both, and say where they are; `folder`, a place for new runs, stays as it is."""
    made = gallery(config)
    print(made.summary)
    print(made.sheet)
    print(made.page)
