"""Train a tiny model twice: `python scripts/train_tiny.py`."""

from styletransfer.cli import script

main = script("train_tiny")

if __name__ == "__main__":
    main()
