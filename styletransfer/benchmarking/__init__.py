"""The parts of `styletransfer.benchmark`: the plain loop, memory, quality, report and picture."""
