"""How good a feature network is, or a style network, by VGG-19."""
