"""Reads and writes films, finds their motion, and paints them with little flicker.

Frames that are painted one by one flicker. So this package makes the next frame similar to the last
painted one, warped by the motion. It paints single frames by `optimize` or `copying`.
"""
