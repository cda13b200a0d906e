"""Films: reads and writes them, finds their motion, and paints them without flicker."""
