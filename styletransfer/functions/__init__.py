"""torch.autograd.Function subclasses that the product runs: forward and backward, and checked.

Each has a functional face (`max_pool`), and where it helps a module (`MaxPool`). All follow one
pattern: `forward` knows no context and `setup_context` saves what `backward` needs, so torch.func
can use them; `backward` is made of differentiable operations, so it can be differentiated again.
"""

from styletransfer.functions.content_tap import content_tap
from styletransfer.functions.max_pool import MaxPool, max_pool
from styletransfer.functions.moments import gram_matrix
from styletransfer.functions.moments_tap import MomentsTap, moments_tap
from styletransfer.functions.winograd import transform_kernels, winograd_conv
from styletransfer.functions.wrap_pad import wrap_pad

__all__ = [
    "MaxPool",
    "MomentsTap",
    "content_tap",
    "gram_matrix",
    "max_pool",
    "moments_tap",
    "transform_kernels",
    "winograd_conv",
    "wrap_pad",
]
