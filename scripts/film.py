"""Paint a film: `python scripts/film.py content=FILM style=PAINTING output=PAINTED_FILM`."""

from styletransfer.cli.hydrated import script
from styletransfer.films.commands.film import film

main = script(film)

if __name__ == "__main__":
    main()
