"""The commands of style networks, one file each. They do not import torch: `--help` is quick."""
