"""Recorded runs: a job with a folder for its record, checkpoint, metrics and pictures."""
