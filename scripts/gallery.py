"""A page to choose a picture from, of a sweep or any runs: `python scripts/gallery.py FOLDER`."""

from styletransfer.cli import script

main = script("gallery")

if __name__ == "__main__":
    main()
