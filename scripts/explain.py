"""Show the path of the gradient: `python scripts/explain.py loss_mode=fake_backward`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.lessons.commands.explain import explain

if __name__ == "__main__":
    run_command(explain)
