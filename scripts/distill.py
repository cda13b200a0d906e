"""Distil VGG-19 into a small feature network: `python scripts/distill.py pictures=FOLDER`."""

from styletransfer.cli import script

main = script("distill")

if __name__ == "__main__":
    main()
