"""Paired painting: pixels are copied from a painting where its photograph looks like the content.

Nothing is optimised here; an optimisation starts from the copied picture. Read `paired.py` first,
which says how pixels are compared. `patches.py` searches for the most similar pixels, `screens.py`
and `pieces.py` keep textures whole, and `copied.py` makes the picture from the matches.
"""
