"""Paint the style pictures of `assets/style` from seeded noise.

python scripts/paint_styles.py                 # all of them, as bundled
python scripts/paint_styles.py /tmp/out oil --size 1024
"""

from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from painters import PAINTERS
from styletransfer.cli.errors import one_line_errors
from styletransfer.lessons.arguments import Parser, seed
from styletransfer.system.files import atomic, check_folder

SEED = 7
SIZE = 704
# In pixels. A painter holds the picture in float64 several times over.
SMALLEST, LARGEST = 64, 8192
QUALITY = 88


def paint(name: str, size: int, seed: int = SEED) -> Image.Image:
    """Paint one picture, `size` pixels on its longer side; the same seed gives the same pixels."""
    picture = PAINTERS[name](size, np.random.default_rng(seed))
    return Image.fromarray((picture * 255 + 0.5).astype(np.uint8))


def save(picture: Image.Image, path: Path) -> None:
    """Write a JPEG with whole colour resolution; a reader never sees half a file."""
    with atomic(path) as draft:
        picture.save(draft, "JPEG", quality=QUALITY, subsampling=0, optimize=True)


def folder(text: str) -> Path:
    """Return the folder that an argument names.

    Raises:
        ArgumentTypeError: no folder can have that name.
    """
    if "\0" in text:
        raise ArgumentTypeError(f"{text!r} holds a null character; name a folder")
    return Path(text)


def pixels(text: str) -> int:
    """Return the longer side in pixels that an argument names.

    Raises:
        ArgumentTypeError: it is no number, or out of range.
    """
    if not text.isdecimal() or not SMALLEST <= int(text[:9]) <= LARGEST:
        raise ArgumentTypeError(f"{text!r} must be a whole number from {SMALLEST} to {LARGEST}")
    return int(text)


def main(argv: Sequence[str] | None = None) -> None:
    """Paint the pictures named on the command line, or all."""
    default = Path(__file__).resolve().parent.parent / "style"
    parser = Parser(description="Paint the bundled style pictures.")
    parser.add_argument("folder", nargs="?", type=folder, default=default)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(PAINTERS))
    parser.add_argument("--size", type=pixels, default=SIZE, help="pixels on the longer side")
    parser.add_argument("--seed", type=seed, default=SEED)
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(PAINTERS):
        parser.error(f"no painter for {', '.join(sorted(unknown))}; known: {', '.join(PAINTERS)}")
    paths = {name: options.folder / f"{name}.jpg" for name in options.names or PAINTERS}
    with one_line_errors():
        for path in paths.values():
            check_folder(path)
        for name, path in paths.items():
            save(paint(name, options.size, options.seed), path)
            print(f"{path}  {path.stat().st_size // 1024} kB", flush=True)


if __name__ == "__main__":
    main()
