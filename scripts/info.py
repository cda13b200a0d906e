"""Print how a picture was made: `scripts/info.py PICTURE`."""

from styletransfer.cli.hydrated import script
from styletransfer.runs.commands.info import info

main = script(info)

if __name__ == "__main__":
    main()
