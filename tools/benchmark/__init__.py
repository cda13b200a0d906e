"""Time and memory against the plain loop."""
