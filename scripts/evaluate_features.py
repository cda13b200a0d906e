"""The former name of `scripts/judge.py`."""

from styletransfer.cli import script

main = script("judge")

if __name__ == "__main__":
    main()
