"""Recorded runs (a run of `train` with its folder), and the commands that read finished runs.

The package `optimize` makes the steps of a run. This package watches them and writes files, so that
the run can be resumed, repeated and inspected.
"""
