"""`benchmark`: time and memory against the plain loop."""
