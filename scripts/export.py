"""Write a style network as ONNX: `python scripts/export.py network=FILE output=net.onnx`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.networks.commands.export import export

if __name__ == "__main__":
    run_command(export)
