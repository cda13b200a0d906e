"""Painters of the bundled style pictures, one per family, drawn from seeded noise."""
