"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`."""

from styletransfer.cli.hydrated import script
from styletransfer.train import train

main = script(train)

if __name__ == "__main__":
    main()
