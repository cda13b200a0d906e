"""Judge the bundled feature network, or style networks, by VGG-19: `python scripts/judge.py`."""

from styletransfer.cli import script

main = script("judge")

if __name__ == "__main__":
    main()
