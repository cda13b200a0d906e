"""Painters of style pictures from seeded noise: two that are bundled, and any number by seed."""
