"""Reads picture files as sRGB in NumPy arrays, by the colours that the files state.

`read(path)` reads every format. `folders.py` tells which files are pictures. The package `pictures`
makes tensors of what is read here; it also resizes and writes pictures.
"""

from styletransfer.formats.decode import Read, read, read_image, xmp_packet

__all__ = ["Read", "read", "read_image", "xmp_packet"]
