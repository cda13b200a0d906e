"""Devices, memory, files, checkpoints, signals, process ranks and progress bars.

These modules deal with the machine on which the program runs, not with pictures or losses.
"""
