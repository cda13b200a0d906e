"""The command `gradcheck`; see styletransfer/commands/gradcheck/command.py."""

import sys

from styletransfer.commands.gradcheck.command import main

if __name__ == "__main__":
    sys.exit(main())
