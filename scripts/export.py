"""Write a style network as ONNX: `python scripts/export.py network=FILE output=net.onnx`."""

from styletransfer.cli import script

main = script("export")

if __name__ == "__main__":
    main()
