"""`python -m tools.benchmark KEY=VALUE ...`."""

from tools import start

if __name__ == "__main__":
    start("benchmark")
