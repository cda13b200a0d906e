"""The losses at one picture and their gradient: whole, or in tiles."""
