"""Paint two style pictures of `assets/style`, oil and stained glass, from seeded noise.

    python scripts/paint_styles.py                 # both, as bundled
    python scripts/paint_styles.py /tmp/out oil --size 1024

`assets/README.md` names the commit that has the painters of the other four.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from styletransfer.cli.errors import one_line_errors
from styletransfer.resources import resource
from styletransfer.system.files import atomic, check_folder
from tools.painters.canvas import Array, Rng
from tools.painters.glass import stained_glass
from tools.painters.oil import oil

PAINTERS: dict[str, Callable[[int, Rng], Array]] = {
    "oil": oil,
    "stained_glass": stained_glass,
}
SEED = 7
SIZE = 704
# Limits of --size in pixels; painting needs memory for many float copies of the picture.
SMALLEST, LARGEST = 64, 8192
QUALITY = 88


def paint(name: str, size: int, seed: int = SEED) -> Image.Image:
    """Return a picture with a longer side of `size` pixels; a seed always gives the same pixels."""
    picture = PAINTERS[name](size, np.random.default_rng(seed))
    return Image.fromarray((picture * 255 + 0.5).astype(np.uint8))


def main(argv: Sequence[str] | None = None) -> None:
    """Paint the pictures named on the command line, or both."""
    parser = argparse.ArgumentParser(description="Paint the bundled style pictures.")
    default = resource("assets") / "style"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(PAINTERS))
    parser.add_argument("--size", type=int, default=SIZE, help="pixels on the longer side")
    parser.add_argument("--seed", type=int, default=SEED, help="0 or more")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(PAINTERS):
        parser.error(f"no painter for {', '.join(sorted(unknown))}; known: {', '.join(PAINTERS)}")
    if not SMALLEST <= options.size <= LARGEST:
        parser.error(f"--size {options.size} must be {SMALLEST} to {LARGEST}")
    if options.seed < 0:
        parser.error(f"--seed {options.seed} must be 0 or more")
    paths = {name: options.folder / f"{name}.jpg" for name in options.names or PAINTERS}
    with one_line_errors():
        for path in paths.values():
            check_folder(path)
        for name, path in paths.items():
            # Full colour resolution; `atomic` never leaves half a file at `path`.
            with atomic(path) as draft:
                picture = paint(name, options.size, options.seed)
                picture.save(draft, "JPEG", quality=QUALITY, subsampling=0, optimize=True)
            print(f"{path}  {path.stat().st_size // 1024} kB", flush=True)
