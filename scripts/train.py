"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`."""

from styletransfer.cli import script

main = script("train")

if __name__ == "__main__":
    main()
