"""Reads picture files: their samples, and what they state about colours, as sRGB in NumPy arrays.

`read(path)` reads every format. `folders.py` tells which files are pictures. Nothing is written or
resized here: that is the room `pictures`, which has tensors.
"""

from styletransfer.formats.decode import Read, read, read_image, xmp_packet

__all__ = ["Read", "read", "read_image", "xmp_packet"]
