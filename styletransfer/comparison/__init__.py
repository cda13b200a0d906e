"""The parts of `styletransfer.compare`: measured evaluations, the report and the picture."""
