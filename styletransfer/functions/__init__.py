"""torch.autograd.Function subclasses: forward and backward written out, and checked.

Each has a functional face (`relu`), and where it helps a module (`ReLU`). All follow one pattern:
`forward` knows no context and `setup_context` saves what `backward` needs, so torch.func can use
them; `backward` is made of differentiable operations, so it can be differentiated again.
"""

from styletransfer.functions.content_tap import ContentTap, content_tap
from styletransfer.functions.global_max_pool import (
    GlobalMaxPool,
    GlobalMaxPoolFunction,
    global_max_pool,
)
from styletransfer.functions.gram import gram_matrix
from styletransfer.functions.linear import Linear, LinearFunction, linear
from styletransfer.functions.max_pool import MaxPool, MaxPoolFunction, max_pool
from styletransfer.functions.relu import ReLU, ReLUFunction, relu
from styletransfer.functions.scale import Scale, ScaleFunction, scale
from styletransfer.functions.style_tap import StyleTap, style_tap
from styletransfer.functions.winograd import WinogradConv, transform_kernels, winograd_conv

__all__ = [
    "ContentTap",
    "GlobalMaxPool",
    "GlobalMaxPoolFunction",
    "Linear",
    "LinearFunction",
    "MaxPool",
    "MaxPoolFunction",
    "ReLU",
    "ReLUFunction",
    "Scale",
    "ScaleFunction",
    "StyleTap",
    "WinogradConv",
    "content_tap",
    "global_max_pool",
    "gram_matrix",
    "linear",
    "max_pool",
    "relu",
    "scale",
    "style_tap",
    "transform_kernels",
    "winograd_conv",
]
