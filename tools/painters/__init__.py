"""Functions that paint style images from seeded noise; each seed gives another image."""
