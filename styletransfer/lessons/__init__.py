"""To learn from: small Functions, how they are checked, and how to read an autograd graph."""

from styletransfer.lessons.global_max_pool import (
    GlobalMaxPool,
    GlobalMaxPoolFunction,
    global_max_pool,
)
from styletransfer.lessons.linear import Linear, LinearFunction, linear
from styletransfer.lessons.relu import ReLU, ReLUFunction, relu
from styletransfer.lessons.scale import Scale, ScaleFunction, scale

__all__ = [
    "GlobalMaxPool",
    "GlobalMaxPoolFunction",
    "Linear",
    "LinearFunction",
    "ReLU",
    "ReLUFunction",
    "Scale",
    "ScaleFunction",
    "global_max_pool",
    "linear",
    "relu",
    "scale",
]
