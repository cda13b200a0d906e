"""Runs that are kept: a job with its folder, its record, its checkpoint, and how it goes on."""
