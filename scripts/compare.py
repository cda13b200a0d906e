"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`."""

from styletransfer.cli.hydrated import script
from styletransfer.lessons.commands.compare import compare

main = script(compare)

if __name__ == "__main__":
    main()
