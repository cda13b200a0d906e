"""Recorded runs: a run of `train` with its folder, for record, checkpoint, metrics and pictures."""
