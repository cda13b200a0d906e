"""Open a page for painting, served by this computer: `python scripts/studio.py`."""

from styletransfer.cli.hydrated import script
from styletransfer.studio.commands.studio import studio

main = script(studio)

if __name__ == "__main__":
    main()
