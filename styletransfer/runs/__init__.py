"""Recorded runs (a run of `train` with its folder), and the commands that read finished runs."""
