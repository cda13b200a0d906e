"""Lessons: checks of the hand-written backwards, and a reader of autograd graphs."""
