"""Films: read and written, their motion, how they are painted, and how much they flicker."""
