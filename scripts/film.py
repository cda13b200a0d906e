"""Paint a film: `python scripts/film.py content=FILM style=PAINTING output=PAINTED_FILM`."""

from styletransfer.cli import script

main = script("film")

if __name__ == "__main__":
    main()
