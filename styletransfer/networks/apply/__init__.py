"""The command `apply`: paints pictures and films with a style network."""
