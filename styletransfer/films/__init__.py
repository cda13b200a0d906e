"""Reads and writes films, finds their motion, and paints them without flicker."""
