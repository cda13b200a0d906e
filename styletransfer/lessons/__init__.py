"""Lessons about `backward`: who calls it, what it is given, and whether its result is right."""
