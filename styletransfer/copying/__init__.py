"""Paired painting: pixels are copied from a painting where its photograph looks like the content.

Read `paired.py` first: what is compared. `patches.py` searches; `copied.py` shows the matches.
"""
