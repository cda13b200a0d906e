"""A job and its run: scales, optimiser, steps, memory."""
