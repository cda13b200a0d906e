"""The command of the studio. Its file does not import the server, so that `--help` is quick."""
