"""`python -m tools.distill KEY=VALUE ...`."""

from tools import start

if __name__ == "__main__":
    start("distill")
