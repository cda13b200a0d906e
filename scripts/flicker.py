"""How much films flicker: `python scripts/flicker.py input=FILM painted=[A,B] style=PAINTING`."""

from styletransfer.cli import script

main = script("flicker")

if __name__ == "__main__":
    main()
