"""The command `train_network`: trains a network that paints in one pass."""
