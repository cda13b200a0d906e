"""Reads and writes pictures as tensors, and works on their colours, sizes and regions.

The decoders are in `formats`. The network whose features the losses compare is in `features`.
"""
