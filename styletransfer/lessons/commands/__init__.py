"""The commands of the lessons, a file each. They import no torch, so that `--help` is quick."""
