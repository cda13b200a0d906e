"""The losses at a picture and their gradient, at once or in tiles."""
