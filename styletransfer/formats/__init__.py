"""Reads picture files: samples and what they state about colours, converted to sRGB tensors.

`decode.decode(path)` is the way in; it reads all formats, and knows no picture in memory. Which
files of a folder are pictures is told by `folders.py`, which imports no torch.
"""
