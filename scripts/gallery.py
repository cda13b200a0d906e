"""Write a page that shows a sweep or other runs: `python scripts/gallery.py FOLDER`."""

from styletransfer.cli.hydrated import script
from styletransfer.runs.commands import gallery

main = script(gallery)

if __name__ == "__main__":
    main()
