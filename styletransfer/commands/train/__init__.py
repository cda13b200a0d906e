"""`train`: two pictures in, a pastiche out."""
