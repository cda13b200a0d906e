"""Devices, memory, files, checkpoints, signals, process ranks and progress bars.

This is what a program asks of the machine that it runs on. Nothing here knows pictures or losses.
"""
