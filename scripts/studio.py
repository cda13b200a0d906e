"""Open a page for painting, served by this computer: `python scripts/studio.py`."""

from styletransfer.cli import script

main = script("studio")

if __name__ == "__main__":
    main()
