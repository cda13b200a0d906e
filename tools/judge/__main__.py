"""`python -m tools.judge KEY=VALUE ...`."""

from tools import start

if __name__ == "__main__":
    start("judge")
