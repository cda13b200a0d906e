"""Records runs of `train` in folders, and has the commands that read the folders of runs.

The package `optimize` makes the steps of a run. This package watches them and writes files, so that
the run can be resumed, repeated and inspected.
"""
