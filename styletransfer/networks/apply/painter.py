"""Paints one picture, or the frames of a film, with a style network."""

import logging
import math
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from styletransfer.errors import UserError
from styletransfer.films.flicker import Steady
from styletransfer.films.formats import CODECS, FILM_EXTENSIONS, is_film
from styletransfer.films.frame import Frame
from styletransfer.films.motion import check_flow
from styletransfer.films.read import Film, FrameCallback
from styletransfer.films.write import FilmWriter, check_writable
from styletransfer.formats.folders import files_at, picture_extensions
from styletransfer.job.sources import files_of
from styletransfer.networks.apply.division import Division
from styletransfer.networks.apply.overlap import Writing, ahead
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.networks.deploy import deployed
from styletransfer.networks.encoder import (
    ENCODED_SIDE,
    SMALLEST_PAINTING,
    color_moments,
    finished,
    moments,
    set_rows,
    style_features,
)
from styletransfer.networks.file import network_file, read
from styletransfer.networks.johnson import SMALLEST_SIDE
from styletransfer.networks.paintings import style_image
from styletransfer.pictures import images
from styletransfer.pictures.color import Palette, in_colors, in_palette, palette
from styletransfer.pictures.images import Picture
from styletransfer.pictures.transparency import fill_transparent
from styletransfer.runs.recipe import Recipe, metadata, recipe, text_of
from styletransfer.runs.record import FREE_KEYS
from styletransfer.settings import each
from styletransfer.system.devices import (
    choose_device,
    choose_precision,
    free_bytes,
    is_out_of_memory,
    readable,
)
from styletransfer.system.files import sha256

logger = logging.getLogger(__name__)

# Peak memory of painting, as a multiple of the first layer's output, (1, widths[0], H, W) in
# float32: 3.3 was measured on x86 (convolved, normalised, padded tensors); the rest is a reserve.
MAPS = 5
# Values of the setting `color` that change mean and covariance of a pastiche's colours in OKLab.
PALETTES = ("style_palette", "content_palette")
# They are computed from a grid of pixels, with at most this number along the longer side.
SAMPLED = 256


class Painter:
    """A Painter paints pictures with a style network (UserError if a setting is wrong)."""

    def __init__(self, config: ApplyConfig) -> None:
        self.config, self.device = config, choose_device(config.device)
        file = read(network_path(config))
        dtype, encoder = choose_precision(config.precision, self.device), file.network.encoder
        self.paintings = Paintings(config, encoder, self.device) if encoder else None
        if not encoder and config.strength != 1:
            raise UserError(f"strength={config.strength} needs a network that knows any style")
        if not encoder and config.color == "style_palette":
            raise UserError("color=style_palette needs a network that knows any style")
        styles = self.paintings.files if self.paintings else file.styles
        self.blend = blend(config, styles, named=not encoder).to(self.device)
        self.division = Division(config, len(styles))
        self.network = deployed(file.network, dtype).to(self.device)

    def take(self, style: str, strength: float) -> None:
        """Paint in the style of the file `style`, with `strength` in [0, 2], from now on.

        (UserError if the file is no picture.)
        """
        assert self.paintings is not None, "a network with styles of its own"
        self.paintings.strength = strength
        if style != self.config.style:
            self.paintings.choose([self.paintings.look_at(style)])
        # These settings get their defaults, so that the recipe leaves them out.
        single = replace(self.config, random=False, seed=0, least_strength=0.5)
        self.config = replace(single, style=style, strength=strength)
        vars(self).pop("_shared_recipe", None)

    @cached_property
    def _shared_recipe(self) -> Recipe:
        """The recipe (settings, hashes of files) that all pictures share, without `input`."""
        config = replace(self.config, network=str(network_path(self.config)))
        return recipe(config, (*FREE_KEYS, "input"), device=self.device)

    def recipe_of(self, source: Path) -> Recipe:
        """Return the recipe of the pastiche of the picture `source`."""
        shared = self._shared_recipe
        return shared | {
            "config": shared["config"] | {"input": os.path.realpath(source)},
            "files": shared["files"] | {"input": [sha256(path) for path in files_at(str(source))]},
        }

    def size(self, size: tuple[int, int], name: Path) -> tuple[int, int]:
        """Return the (height, width) of the pastiche for a picture of (height, width) `size`.

        (UserError about the file `name` if the picture is too small, or too large for memory.)
        """
        if self.config.size:
            size = images.scaled_size(size, self.config.size)
        if min(size) < SMALLEST_SIDE:
            pixels = f"{size[1]} x {size[0]} pixels"
            least = f"each side needs at least {SMALLEST_SIDE}"
            raise UserError(f"{name} comes down to {pixels}; {least}")
        needed = 4 * MAPS * self.network.layout.widths[0] * size[0] * size[1]
        if needed > (free := free_bytes(self.device)):
            largest = int(max(size) * math.sqrt(free / needed))
            raise UserError(f"{name} needs {readable(needed)} of memory; choose size={largest}")
        return size

    @torch.no_grad()
    def paint(self, content: Tensor) -> Tensor:
        """Return the pastiche of a picture, both (1, 3, H, W), sRGB in [0, 1], on the CPU."""
        image = content.to(self.device).contiguous(memory_format=torch.channels_last)
        if self.paintings is not None:
            self.paintings.set_rows(self.network, image)
        return self.division.composed(content, partial(self._painted, content, image))

    def _painted(self, content: Tensor, image: Tensor, style: int | None) -> Tensor:
        """Return the whole pastiche in the style number `style`; None stands for `self.blend`.

        `image` is the content on the network's device.
        """
        config, styles, blend = self.config, self.paintings, self.blend
        if style is not None:
            blend = one_hot(torch.tensor([style]), blend.shape[1]).to(blend)
        painted, is_grey = self.network(image, blend).cpu(), False
        if styles is not None:
            painted = styles.finished(painted, blend[0])
            is_grey = styles.is_grey and images.is_grey([content])
        if config.color in PALETTES and config.color_strength > 0:
            every = 1 + max(image.shape) // SAMPLED
            few, start = (one[..., ::every, ::every] for one in (content, painted))
            goal = palette([(1.0, few, None)])
            if styles is not None and config.color == "style_palette":
                colors = styles.colors(blend[0])
                lit = in_palette(few, goal, colors, 1.0, keep_light=True)
                goal = palette([(1.0, lit, None)])
            own = palette([(1.0, start, None)])
            painted = in_palette(painted, own, goal, config.color_strength)
        return in_colors(painted, content, config.color, config.color_strength, grey=is_grey)


@dataclass(frozen=True)
class Painting:
    """A Painting holds what a network for any style needs to know about one style image."""

    row: Tensor  # (1, R), scales and shifts for the instance norms of the network
    palette: Tensor  # (3, 4), mean and covariance of the sRGB colours, see `encoder.color_moments`
    colors: Palette  # mean and covariance of the colours in OKLab
    is_grey: bool  # whether all pixels of the image are grey


class Paintings:
    """Paintings holds the style images, each encoded as a row: scales and shifts for the network.

    (UserError if no style is given, or a file is no picture.)
    """

    def __init__(self, config: ApplyConfig, encoder: nn.Module, device: torch.device) -> None:
        if config.style is None:
            raise UserError("this network takes its style from a picture; give style=PICTURE")
        self.config, self.device, self.encoder = config, device, encoder.to(device)
        self.strength = config.strength
        self._own: tuple[Tensor, Tensor] | None = None  # (last content image, its row)
        self.features = style_features(device, torch.float32)
        self.files = files_of("style", config.style)
        self.choose([self.look_at(file) for file in self.files])

    def look_at(self, file: str) -> Painting:
        """Read and encode the style image `file` (UserError if it is no picture)."""
        picture = style_image(file, self.config.style_size, SMALLEST_PAINTING)
        grey = images.is_grey([picture])
        colors = palette([(1.0, picture, None)])
        return Painting(self._row(picture.to(self.device)), color_moments(picture), colors, grey)

    def choose(self, paintings: Sequence[Painting]) -> None:
        """Make the network paint in these styles from now on."""
        self.rows = torch.cat([one.row for one in paintings])
        self.palettes = torch.stack([one.palette for one in paintings])
        self._colors = [one.colors for one in paintings]
        self.is_grey = all(one.is_grey for one in paintings)

    def set_rows(self, network: nn.Module, image: Tensor) -> None:
        """Set the network's scales and shifts: a blend of those of the styles and of `image`.

        `strength` is the weight of the styles. Above 1, `image` has a negative weight.
        """
        rows = self.rows
        if self.strength != 1:
            if self._own is None or self._own[0] is not image:
                size = images.scaled_size(images.size_of(image), ENCODED_SIDE)
                self._own = image, self._row(images.resize(image, size))
            rows = torch.lerp(self._own[1], rows, self.strength)
        set_rows(network, rows)

    def finished(self, pastiche: Tensor, shares: Tensor) -> Tensor:
        """Return a pastiche (1, 3, H, W), on the CPU, recoloured towards the styles' palettes.

        `shares` (S,) holds the weight of each style; the sum is 1.
        """
        mixed = torch.einsum("s,sij->ij", shares.cpu().double(), self.palettes)
        return finished(pastiche, mixed, self.strength)

    def colors(self, shares: Tensor) -> Palette:
        """Return mean and covariance in OKLab of the styles' colours; `shares`: see `finished`."""
        parts = [*zip(shares.tolist(), self._colors, strict=True)]
        mean = torch.stack([share * mean for share, (mean, _) in parts]).sum(0)
        seconds = [share * (spread + mean @ mean.T) for share, (mean, spread) in parts]
        return mean, torch.stack(seconds).sum(0) - mean @ mean.T

    def _row(self, picture: Tensor) -> Tensor:
        row: Tensor = self.encoder(moments(self.features, picture))
        return row


def network_path(config: ApplyConfig) -> Path:
    """Return the network's path; "auto" means "any" if `style` is a file or folder, else "oil"."""
    if config.network != "auto":
        return network_file(config.network)
    is_picture = any(Path(name).suffix or os.path.isdir(name) for name in each(config.style))
    return network_file("any" if is_picture else "oil")


def blend(config: ApplyConfig, styles: list[str], named: bool = True) -> Tensor:
    """Return the weight of each style in a pastiche, (1, S), with sum 1.

    If `named`, `config.style` may be one of the names `styles`, whose weight is then 1. (UserError
    if a style is unknown, or if the weights are wrong.)
    """
    weights, names = config.style_weights or [1.0] * len(styles), ", ".join(styles)
    if config.style is not None and named:
        if config.style_weights:
            raise UserError("style and style_weights exclude each other; leave one of them out")
        if config.style not in styles:
            raise UserError(f"style={config.style} is none of the network's; it has {names}")
        weights = [float(name == config.style) for name in styles]
    if len(weights) != len(styles):
        raise UserError(
            f"style_weights holds {len(weights)} numbers, and there are {len(styles)} styles "
            f"({names}); give one for each"
        )
    shares = torch.tensor([weights], dtype=torch.float64)
    if not (shares >= 0).all() or not 0 < float(shares.sum()) < math.inf:
        raise UserError(
            f"style_weights={weights} must be finite numbers, 0 or more, and not all of them 0"
        )
    return (shares / shares.sum()).float()


def as_written(name: str) -> str:
    """Return `name`; if its format can be read but not written, add .png or .mp4."""
    extension = Path(name).suffix.lower()
    if extension in picture_extensions() and extension not in images.BIT_DEPTHS:
        return name + ".png"
    if extension in FILM_EXTENSIONS and extension not in CODECS:
        return name + ".mp4"
    return name


def paint_file(painter: Painter, source: Path, target: Path) -> None:
    """Paint `source` and write `target`: a film if `target` has the extension of a film.

    (UserError if `source` cannot be painted, also for lack of memory.)
    """
    with memory_for(source):
        (paint_film if is_film(target) else paint_picture)(painter, source, target)


@contextmanager
def memory_for(source: Path) -> Iterator[None]:
    """Turn a lack of memory in the body into a UserError about the file `source`."""
    try:
        yield
    except (MemoryError, RuntimeError, SystemError) as error:
        if not is_out_of_memory(error):
            raise
        advice = "choose a smaller size"
        raise UserError(f"there is not enough memory for {source}; {advice}") from error


def paint_picture(painter: Painter, source: Path, target: Path) -> None:
    """Paint the picture `source` and write `target` with the same transparency."""
    painted(painter, images.read(source), source, target)()


def painted(painter: Painter, picture: Picture, source: Path, target: Path) -> Callable[[], None]:
    """Paint `picture`, which was read from `source`; return a function that writes `target`."""
    size = painter.size(picture.size, source)
    images.check_writable(target, size)
    picture = images.resize_picture(picture, max(size))
    content = fill_transparent(picture)
    xmp = metadata("apply", painter.recipe_of(source)) if painter.config.recipe else b""
    return partial(images.write, target, painter.paint(content), picture.alpha, xmp=xmp)


def paint_film(
    painter: Painter, source: Path, target: Path, callback: FrameCallback | None = None
) -> None:
    """Paint the film `source` frame by frame; write `target` with the same times and sound.

    To reduce flicker, the previous painted frame is mixed into each painted frame, with the weight
    `config.steady` (see `Steady`).
    `callback` is called after each frame; if it returns False, the film ends there.
    """
    text = text_of("apply", painter.recipe_of(source)) if painter.config.recipe else ""
    with (
        Film(source) as film,
        FilmWriter(target, film, text) as writer,
        closing(film_frames(film)) as frames,
        Writing(raised, threads=1) as writing,
    ):
        size = painter.size(film.size, source)
        check_writable(target, size)
        steady = Steady(painter.config.steady)
        if steady.strength:
            check_flow(size)
        for frame in film.bar(frames):
            content = images.resize(frame.image, size)
            painted = steady.mixed(content, painter.paint(content))
            writing.call(partial(writer.write, painted, frame.time, frame.duration))
            if callback and not callback(film.count, content, painted):
                break


def film_frames(film: Film) -> Generator[Frame]:
    """Yield the frames of a film; a thread reads the next one meanwhile."""
    frames = film.frames()
    with closing(ahead(lambda _: next(frames, None), count())) as read:
        for _, future in read:
            frame = future.result()
            if frame is None:
                return
            yield frame


def raised(error: UserError) -> None:
    """Raise `error`."""
    raise error
