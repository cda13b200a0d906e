"""From films to a table."""

from contextlib import ExitStack

from styletransfer.config import FlickerConfig, StyleTransferConfig, each
from styletransfer.errors import UserError
from styletransfer.films import Film
from styletransfer.films.flicker import StyleLoss, measure, report, style_loss_of
from styletransfer.films.flow import check_flow, motion_between
from styletransfer.job.prepare import prepare
from styletransfer.pictures.images import Picture
from styletransfer.system.signals import stop_on_signals

INPUT = "input"


def flicker(config: FlickerConfig) -> str:
    """Measure films, and return what was found as a table.

    Where the painted films have another size than the input, the input is resized.

    Raises:
        UserError: a film that cannot be read, films of different lengths or sizes, or a style that
            cannot be read.
        Stopped: a signal has come.
    """
    names = [str(name) for name in each(config.painted)]
    if not names or INPUT in names:
        raise UserError("painted names no film; name at least one")
    if len(set(names)) < len(names):
        raise UserError("painted names a film twice; name each once")
    with stop_on_signals(), ExitStack() as files:
        source, *painted = (files.enter_context(Film(path)) for path in (config.input, *names))
        for film in painted[1:]:
            if film.size != painted[0].size:
                raise UserError(f"{film.path} and {painted[0].path} differ in size; resize one")
        size = painted[0].size
        check_flow(size)
        films = {INPUT: source.images(size)}
        films |= {name: film.images(size) for name, film in zip(names, painted, strict=True)}
        loss = style_loss(config, source, size) if each(config.style) else None
        found = measure(films, motion_between, loss)
    return report(found, names[0] if len(names) > 1 else None)


def style_loss(config: FlickerConfig, source: Film, size: tuple[int, int]) -> StyleLoss | None:
    """Return what measures the style, as the default objective of a picture does."""
    first = Picture(next(source.images(size)), name=config.input)
    settings = StyleTransferConfig(
        style=config.style, size=max(size), device=config.device, precision="float32"
    )
    return style_loss_of(prepare(settings, {"content": first}))
