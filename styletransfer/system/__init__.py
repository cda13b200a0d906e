"""The machine: devices, memory, files, processes and signals."""
