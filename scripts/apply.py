"""Paint with a style network: `python scripts/apply.py network=FILE input=PHOTO output=FILE`."""

from styletransfer.cli.hydrated import script
from styletransfer.networks.commands.apply import apply

main = script(apply)

if __name__ == "__main__":
    main()
