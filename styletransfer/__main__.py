"""`python -m styletransfer COMMAND KEY=VALUE ...`, the same as the console command."""

from styletransfer.cli import main

if __name__ == "__main__":
    main()
