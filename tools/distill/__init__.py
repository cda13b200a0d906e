"""A small network that sees what a large one sees."""
