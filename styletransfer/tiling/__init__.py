"""Computes the exact gradient of an objective tile by tile, for pictures too large for memory.

Read `tiled.py` first. `tiles.py` cuts a picture into tiles, `passes.py` runs the network forward
and backward over them, and `scan.py` computes features, moments and losses in these passes.
"""
