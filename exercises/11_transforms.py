"""Exercise 11: one gradient for each example.

vmap(grad(f)) computes the gradient of f for each example of a batch. It refuses this Function.
Write it anew so that it works there. To read: docs/course/functions.md, about torch.func
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import check, doctor


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


def test():
    doctor(Square, torch.randn(4, 3), asked=["func.grad", "vmap of func.grad"])


if __name__ == "__main__":
    check(test)
