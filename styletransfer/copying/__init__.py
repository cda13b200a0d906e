"""Paired painting: pixels are copied from a painting where its photograph looks like the content.

Losses copy no pixels: they compare features, or statistics of features. Nothing is optimised here;
a run starts from the copied picture. Read `paired.py` first: what is compared.
`patches.py` searches; `pieces.py` keeps textures whole; `copied.py` shows the matches.
"""
