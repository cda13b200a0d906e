"""Print how a picture was made: `scripts/info.py PICTURE`."""

from styletransfer.cli import script

main = script("info")

if __name__ == "__main__":
    main()
