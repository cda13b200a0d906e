"""Show the path of the gradient: `python scripts/explain.py loss_mode=fake_backward`."""

from styletransfer.cli.hydrated import script
from styletransfer.lessons.commands.explain import explain

main = script(explain)

if __name__ == "__main__":
    main()
