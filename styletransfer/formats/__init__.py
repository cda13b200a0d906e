"""Reads picture files into NumPy arrays, and converts the colours that the files state to sRGB.

`read(path)` reads every format. `folders.py` lists the pictures in a folder. The package `pictures`
makes tensors of these arrays; it also resizes and writes pictures.
"""

from styletransfer.formats.decode import Read, read, read_image, xmp_packet

__all__ = ["Read", "read", "read_image", "xmp_packet"]
