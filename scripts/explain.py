"""Show the path of the gradient: `python scripts/explain.py loss_mode=fake_backward`."""

from styletransfer.cli import script

main = script("explain")

if __name__ == "__main__":
    main()
