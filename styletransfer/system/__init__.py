"""Devices, memory, files, checkpoints, signals, process ranks and progress bars.

These modules deal with the machine that the program runs on; they know no pictures and no losses.
"""
