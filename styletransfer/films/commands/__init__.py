"""The command of films. Its file imports no torch, so that `--help` is quick."""
