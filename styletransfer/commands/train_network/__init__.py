"""`train_network`: a network that paints in one pass."""
