"""Check every hand-written backward: `python scripts/gradcheck.py`."""

from styletransfer.cli import script

main = script("gradcheck")

if __name__ == "__main__":
    main()
