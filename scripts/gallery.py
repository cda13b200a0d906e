"""Write a page that shows a sweep or other runs: `python scripts/gallery.py FOLDER`."""

from styletransfer.cli import script

main = script("gallery")

if __name__ == "__main__":
    main()
