"""The command `gradcheck`; see styletransfer/commands/gradcheck.py."""

import sys

from styletransfer.commands.gradcheck import main

if __name__ == "__main__":
    sys.exit(main())
