"""The commands for finished runs, a file each. They import no torch, so that `--help` is quick."""
