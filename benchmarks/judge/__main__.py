"""`python -m benchmarks.judge KEY=VALUE ...`."""

from benchmarks import start

if __name__ == "__main__":
    start("judge")
