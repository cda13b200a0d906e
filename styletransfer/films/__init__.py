"""Reads and writes films, finds their motion, and paints them with little flicker."""
