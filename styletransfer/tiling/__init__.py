"""The gradient of an objective, computed exactly in tiles, where memory is too small for the whole.

Read `tiled.py` first. `scan.py` makes the passes of `passes.py` over the tiles of `tiles.py`.
"""
