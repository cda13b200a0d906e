"""Reads and writes films, finds their motion, paints them without flicker; the command `film`."""
