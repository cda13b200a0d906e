"""Scripts that each measure one thing and print the figures."""
