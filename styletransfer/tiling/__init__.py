"""The objective in tiles: the same gradient, in memory that a tile bounds."""
