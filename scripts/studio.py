"""Open a web page for painting, served by this computer: `python scripts/studio.py`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.studio.commands.studio import studio

if __name__ == "__main__":
    run_command(studio)
