"""Measure time and memory against the plain loop: `python scripts/benchmark.py`."""

from styletransfer.cli import script

main = script("benchmark")

if __name__ == "__main__":
    main()
