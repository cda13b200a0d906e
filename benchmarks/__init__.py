"""Scripts that each measure something and print the figures."""
