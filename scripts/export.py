"""Write a style network as ONNX: `python scripts/export.py network=FILE output=net.onnx`."""

from styletransfer.cli.hydrated import script
from styletransfer.networks.commands.export import export

main = script(export)

if __name__ == "__main__":
    main()
