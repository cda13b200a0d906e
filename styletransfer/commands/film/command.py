"""Paint a film by optimisation: `scripts/film.py content=FILM style=PAINTING output=PAINTED_FILM`.

Each frame goes on from the one before it, moved along, so that strokes stay on what they paint
(Ruder et al. 2016). Interrupted, the same command goes on where it ended. Needs the extra [video].
"""

from pathlib import Path

from styletransfer.commands.film.run import paint_film
from styletransfer.config import FilmConfig


def main(config: FilmConfig, folder: Path) -> None:
    """Paint, and say how much the film flickers and where it is."""
    print(paint_film(config, folder))
