"""`judge`: how good a feature network is, by VGG-19."""
