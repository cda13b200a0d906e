"""Pictures as tensors: writes them, and works on their colours, sizes and regions.

The decoders are in `formats`. What a network sees in a picture is in `features`.
"""
