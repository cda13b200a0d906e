"""The commands of the lessons. Their files do not import torch, so that `--help` is quick."""
