"""Measures with VGG-19 how good a feature network or a style network is."""
