"""Lessons: small Functions, checks of their backward, and a reader of autograd graphs."""
