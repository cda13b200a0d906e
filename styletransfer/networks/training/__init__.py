"""Trains a style network, a network that paints in one pass: the command `train_network`."""
