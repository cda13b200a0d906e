"""The machine: devices, memory, files, measurements."""
