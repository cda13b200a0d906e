"""Devices, memory, files, signals, process ranks, progress bars and HTML templates."""
