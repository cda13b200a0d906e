"""Check every hand-written backward: `python scripts/gradcheck.py`."""

from styletransfer.cli.hydrated import script
from styletransfer.lessons.commands import gradcheck

main = script(gradcheck)

if __name__ == "__main__":
    main()
