"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`."""

from styletransfer.cli import script

main = script("compare")

if __name__ == "__main__":
    main()
