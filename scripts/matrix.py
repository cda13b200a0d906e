"""Try six ways to give a derivative: `python scripts/matrix.py`."""

from styletransfer.cli.hydrated import script
from styletransfer.lessons.commands import matrix

main = script(matrix)

if __name__ == "__main__":
    main()
