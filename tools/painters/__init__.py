"""Painters that make style images from seeded noise; each seed gives another image."""
