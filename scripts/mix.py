"""Mix a finished pastiche with its content: `scripts/mix.py RUN strength=0.6 output=y.png`."""

from styletransfer.cli.hydrated import script
from styletransfer.runs.commands.mix import mix

main = script(mix)

if __name__ == "__main__":
    main()
