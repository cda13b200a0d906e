"""What depends on the machine: devices, memory, files and signals."""
