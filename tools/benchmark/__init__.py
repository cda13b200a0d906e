"""Measure time and memory in comparison with the plain loop."""
