"""Mix a finished pastiche with its content: `scripts/mix.py RUN strength=0.6 output=y.png`."""

from styletransfer.cli import script

main = script("mix")

if __name__ == "__main__":
    main()
