"""Reads and writes films, finds their motion, and paints them with little flicker.

Frames that are painted one by one flicker. This room carries each painted frame into the next; how
a single picture is painted, it leaves to `optimize`.
"""
