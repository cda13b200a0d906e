"""The command `train_tiny`; see styletransfer/commands/train_tiny/command.py."""

import sys

from styletransfer.commands.train_tiny.command import main

if __name__ == "__main__":
    sys.exit(main())
