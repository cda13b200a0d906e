"""To learn from: small Functions, how they are checked, and how to read an autograd graph."""
