"""A page to paint with, on this machine: `python scripts/studio.py`."""

from styletransfer.cli import script

main = script("studio")

if __name__ == "__main__":
    main()
