"""Exercise 5: a linear layer.

y = x W^T + b with x of shape (n, in), W of shape (out, in) and b of shape (out,). Write backward: a
gradient for each of the three. To read: docs/course/functions.md
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.T + bias

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("write this method")


def test():
    x, weight, bias = (torch.ones(*shape, requires_grad=True) for shape in ((4, 3), (2, 3), (2,)))
    shape = (
        "A gradient has the shape of its input. Of W that is (out, in): which of the two factors "
        "has to be transposed?"
    )
    y = Linear.apply(x, weight, bias)
    call(y.sum().backward, hints={"invalid gradient at index 1": shape})
    # The doctor knows the rest, such as the bias, of which each row has its part.
    doctor(Linear, torch.randn(4, 3), torch.randn(2, 3), torch.randn(2))


if __name__ == "__main__":
    check(test)
