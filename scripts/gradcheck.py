"""Check your own backward: `python scripts/gradcheck.py target=relu.py:MyReLU inputs=[4x3]`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.lessons.commands.gradcheck import gradcheck

if __name__ == "__main__":
    run_command(gradcheck)
