"""Paint with a style network: `scripts/apply.py network=FILE input=PHOTO output=FILE`.

`input` may be a film, then `output` is one as well; or a folder, then `output` is one with the same
structure, and run again, it paints what is missing or older than its picture or the network.
"""

import logging
import math
import os
import sys
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import tqdm

from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.films.motion import check_flow
from styletransfer.films.painter import Steady
from styletransfer.films.read import FILM_EXTENSIONS, Film
from styletransfer.films.write import CODECS, FilmWriter, check_writable
from styletransfer.job.schedule import COLORS
from styletransfer.networks import deployed, in_strips
from styletransfer.networks.file import network_file, read
from styletransfer.networks.johnson import SMALLEST_SIDE, STRIDE
from styletransfer.networks.strips import HALO
from styletransfer.pictures import images
from styletransfer.pictures.color import with_chroma_of
from styletransfer.pictures.folders import EXTENSIONS
from styletransfer.system.devices import choose_device, choose_precision
from styletransfer.system.files import check_folder
from styletransfer.system.memory import free_bytes, is_out_of_memory
from styletransfer.system.signals import stop_on_signals

logger = logging.getLogger(__name__)

# A network has learnt its palette; recolouring the style, as content_palette does, comes too late.
FINISHES = tuple(color for color in COLORS if color != "content_palette")
# Feature maps in float32 at full size that are there at once at most: 3.3 were measured (convolved,
# normed and reflected), and what the library needs comes on top.
MAPS = 5
# Of the memory that is free, as much as a picture may take as a whole.
SHARE = 0.5
# Pixels of a strip where it does not.
STRIP = 2**20


def main(config: ApplyConfig, folder: Path) -> None:
    """Paint what `config.input` names, and say where the pastiches are.

    Each file appears when it is complete; what was painted before a signal such as Ctrl-C stays, of
    a film under the name of a partial one.
    """
    source, network = Path(config.input), network_file(config.network)
    target = Path(config.output) if config.output else default_output(source, network)
    with stop_on_signals():
        if os.path.isdir(source):
            check_folders(source, target)
            files = pairs(source, target)
            paint_all(Painter(config), files, network)
        else:
            check_file(source, target)
            paint(Painter(config), source, target)
    print(target)


def default_output(source: Path, network: Path) -> Path:
    """Return a path in the current folder that is named after the input and the network."""
    # train_network calls every file network.safetensors, in a folder named after the style.
    name = network.parent.name if network.stem == "network" else network.stem
    return Path(as_written(f"{source.stem}_{name}{source.suffix}"))


def as_written(name: str) -> str:
    """Return a file's name as it is painted: what cannot be written becomes PNG, or MP4."""
    extension = Path(name).suffix.lower()
    if extension in EXTENSIONS and extension not in images.BIT_DEPTHS:
        return name + ".png"
    if extension in FILM_EXTENSIONS and extension not in CODECS:
        return name + ".mp4"
    return name


def check_file(source: Path, target: Path) -> None:
    """Raise UserError if a pastiche could not be written later, or would replace its picture."""
    if is_film(target):
        check_writable(target)
    elif source.suffix.lower() in FILM_EXTENSIONS:
        endings = " ".join(CODECS)
        raise UserError(f"input={source} is a film and output={target} is not; choose of {endings}")
    else:
        images.check_writable(target)
    if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise UserError(f"output={target} would overwrite the input; choose another")


def check_folders(source: Path, target: Path) -> None:
    """Check that two folders lie apart, so that no pastiche is ever taken for a picture."""
    inputs, outputs = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if inputs.is_relative_to(outputs) or outputs.is_relative_to(inputs):
        raise UserError(f"output={target} and input={source} lie in one another; choose another")
    if os.path.exists(outputs) and not os.path.isdir(outputs):
        raise UserError(f"output={target} is a file, and input={source} a folder; name a folder")
    check_folder(outputs / "pastiche.png")


def pairs(source: Path, target: Path) -> list[tuple[Path, Path]]:
    """Return the pictures and films below a folder, but for hidden ones, and their pastiches."""
    files = []
    for path in sorted(source.rglob("*")):
        inner = path.relative_to(source)
        if any(part.startswith(".") for part in inner.parts) or path.is_dir():
            continue
        if path.suffix.lower() in (*EXTENSIONS, *FILM_EXTENSIONS):
            files.append((path, target / inner.with_name(as_written(path.name))))
    if not files:
        advice = "name a folder of some, or a file"
        raise UserError(f"input={source} holds no picture and no film; {advice}")
    return files


class Painter:
    """A network, ready to paint as `config` says (UserError: settings that are out of range)."""

    def __init__(self, config: ApplyConfig) -> None:
        check(config)
        self.config, self.device = config, choose_device(config.device)
        file = read(network_file(config.network))
        dtype = choose_precision(config.precision, self.device)
        self.network = deployed(file.network, dtype).to(self.device)
        self.blend = blend(config, file.styles).to(self.device)

    def size(self, size: tuple[int, int], name: Path) -> tuple[int, int]:
        """Return the (height, width) of the pastiche of a picture (UserError: `name` is small)."""
        if self.config.size:
            size = images.scaled_size(size, self.config.size)
        if min(size) < SMALLEST_SIDE:
            pixels = f"{size[1]} x {size[0]} pixels"
            least = f"each side needs at least {SMALLEST_SIDE}"
            raise UserError(f"{name} comes down to {pixels}; {least}")
        return size

    def rows(self, size: tuple[int, int]) -> int:
        """Return how many rows of a picture (height, width) are painted at a time."""
        height, width = size
        needed = 4 * MAPS * self.network.layout.widths[0] * height * width
        fits = needed <= SHARE * free_bytes(self.device)
        rows = self.config.strip or (height if fits else max(2 * HALO, STRIP // width))
        if rows < height:
            logger.info("%d x %d pixels in strips of %d rows", width, height, rows)
        return rows

    @torch.no_grad()
    def paint(self, content: Tensor, rows: int) -> Tensor:
        """Return the pastiche of a picture, both (1, 3, H, W), sRGB in [0, 1], on the CPU."""
        image = content.to(self.device).contiguous(memory_format=torch.channels_last)
        if rows < image.shape[2]:
            painted = in_strips(self.network, image, self.blend, rows).cpu()
        else:
            painted = self.network(image, self.blend).cpu()
        if self.config.color == "content_luminance":
            painted = with_chroma_of(painted, content, self.config.color_strength)
        return painted


def check(config: ApplyConfig) -> None:
    """Raise UserError for what is out of range, naming the key, its value and what it may be."""
    if config.size < 0:
        raise UserError(f"size={config.size} must be 0, for that of the picture, or more")
    if config.color not in FINISHES:
        raise UserError(f"unknown color {config.color!r}; choose {' or '.join(FINISHES)}")
    if not 0 <= config.color_strength <= 1:
        raise UserError(f"color_strength={config.color_strength} must be between 0 and 1")
    if not 0 <= config.steady < 1:
        raise UserError(f"steady={config.steady} must be 0 or more, below 1")
    if config.strip != 0 and config.strip < STRIDE:
        allowed = f"{STRIDE} rows or more, or 0 to have it chosen"
        raise UserError(f"strip={config.strip} must be {allowed}")


def blend(config: ApplyConfig, styles: list[str]) -> Tensor:
    """Return how much of each of a network's styles a pastiche has, (1, S), adding up to 1."""
    weights = config.style_weights or [1.0] * len(styles)
    if config.style is not None:
        if config.style_weights:
            raise UserError("style and style_weights exclude each other; leave one of them out")
        if config.style not in styles:
            names = ", ".join(styles)
            raise UserError(f"style={config.style} is none of the network's; it has {names}")
        weights = [float(name == config.style) for name in styles]
    if len(weights) != len(styles):
        raise UserError(
            f"style_weights holds {len(weights)} numbers, and the network has {len(styles)} styles "
            f"({', '.join(styles)}); give one for each"
        )
    shares = torch.tensor([weights], dtype=torch.float64)
    if not (shares >= 0).all() or not 0 < float(shares.sum()) < math.inf:
        raise UserError(
            f"style_weights={weights} must be finite numbers, 0 or more, and not all of them 0"
        )
    return (shares / shares.sum()).float()


def paint_all(painter: Painter, files: list[tuple[Path, Path]], network: Path) -> None:
    """Paint all files whose pastiches are not there yet; of those that cannot be, say so last."""
    left = [(source, target) for source, target in files if not is_done(target, source, network)]
    if done := len(files) - len(left):
        logger.info("%d of %d files are there already", done, len(files))
    failed = 0
    bar = tqdm(left, unit="file", dynamic_ncols=True, disable=sys.stderr is None)
    for source, target in bar:
        bar.set_postfix_str(source.name)
        try:
            paint(painter, source, target)
        except UserError as error:
            failed += 1
            logger.warning("%s", error)
    if failed:
        raise UserError(
            f"{failed} of {len(files)} files could not be painted, see above; the others are done"
        )


def is_done(target: Path, *made_of: Path) -> bool:
    """Tell whether a pastiche is there and younger than what it is made of."""
    try:
        return all(target.stat().st_mtime_ns > path.stat().st_mtime_ns for path in made_of)
    except OSError:
        return False


def paint(painter: Painter, source: Path, target: Path) -> None:
    """Paint a film if `target` has the extension of one, otherwise a picture."""
    try:
        (paint_film if is_film(target) else paint_picture)(painter, source, target)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(f"{source} fits no memory; choose a smaller size or strip") from error


def is_film(target: Path) -> bool:
    """Tell whether a file of this name is written as a film."""
    return target.suffix.lower() in CODECS


def paint_picture(painter: Painter, source: Path, target: Path) -> None:
    """Paint a picture; its transparency is kept."""
    picture = images.read(source)
    size = painter.size(picture.size, source)
    picture = images.resize_picture(picture, max(size))
    content = images.fill_transparent(picture)
    images.write(target, painter.paint(content, painter.rows(size)), picture.alpha)


def paint_film(painter: Painter, source: Path, target: Path) -> None:
    """Paint a film, each frame by itself but for `steady`; its times and its sound are kept."""
    with Film(source) as film, FilmWriter(target, like=film) as writer:
        size = painter.size(film.size, source)
        rows = painter.rows(size)
        steady = Steady(painter.config.steady)
        if steady.strength:
            check_flow(size)
        for frame in film.bar(film.frames()):
            content = images.resize(frame.image, size)
            painted = painter.paint(content, rows)
            writer.write(steady.mixed(content, painted), frame.time)
