"""The commands of style networks, a file each. They import no torch: `--help` is quick."""
