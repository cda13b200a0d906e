"""Recorded runs (a run of `train` with its folder), and the commands that read finished runs.

It watches the steps of a run, so that the run can be resumed, repeated and read. It makes no step.
"""
