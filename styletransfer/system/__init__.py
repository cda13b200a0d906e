"""The machine: devices, memory, files and signals."""
