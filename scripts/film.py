"""Paint a film: `python scripts/film.py content=FILM style=PAINTING output=PAINTED_FILM`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.films.commands.film import film

if __name__ == "__main__":
    run_command(film)
