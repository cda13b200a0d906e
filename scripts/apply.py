"""Paint with a style network: `python scripts/apply.py network=FILE input=PHOTO output=FILE`."""

from styletransfer.cli import script

main = script("apply")

if __name__ == "__main__":
    main()
