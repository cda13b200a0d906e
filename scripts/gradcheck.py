"""Check a backward: `python scripts/gradcheck.py target=relu.py:MyReLU inputs=[4x3]`."""

from styletransfer.cli.hydrated import script
from styletransfer.lessons.commands.gradcheck import gradcheck

main = script(gradcheck)

if __name__ == "__main__":
    main()
