"""Distilling VGG-19 into the small feature network that ships with the project."""
