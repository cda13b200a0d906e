"""The command `train_tiny`; see styletransfer/commands/train_tiny.py."""

import sys

from styletransfer.commands.train_tiny import main

if __name__ == "__main__":
    sys.exit(main())
