"""Paint the style pictures of `assets/style` from seeded noise.

python scripts/paint_styles.py                 # all of them, as bundled
python scripts/paint_styles.py /tmp/out oil --size 1024
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from painters import PAINTERS

SEED = 7
SIZE = 704
QUALITY = 88


def paint(name: str, size: int, seed: int = SEED) -> Image.Image:
    """Paint one picture, `size` pixels on its longer side; the same seed gives the same pixels."""
    picture = PAINTERS[name](size, np.random.default_rng(seed))
    return Image.fromarray((picture * 255 + 0.5).astype(np.uint8))


def save(picture: Image.Image, path: Path) -> None:
    """Write a JPEG with whole colour resolution; a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        picture.save(draft, "JPEG", quality=QUALITY, subsampling=0, optimize=True)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Paint the pictures named on the command line, or all."""
    default = Path(__file__).resolve().parent.parent / "style"
    parser = argparse.ArgumentParser(description="Paint the bundled style pictures.")
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(PAINTERS))
    parser.add_argument("--size", type=int, default=SIZE, help="pixels on the longer side")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(PAINTERS):
        parser.error(f"no painter for {', '.join(sorted(unknown))}; known: {', '.join(PAINTERS)}")
    if options.size < 64:
        parser.error("--size must be at least 64")
    for name in options.names or PAINTERS:
        path = options.folder / f"{name}.jpg"
        save(paint(name, options.size, options.seed), path)
        print(f"{path}  {path.stat().st_size // 1024} kB", flush=True)


if __name__ == "__main__":
    main()
