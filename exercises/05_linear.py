"""Exercise 5: a linear layer.

y = x W + b with x of shape (n, in), W of shape (in, out), unlike that of nn.Linear, and b of shape
(out,). Write backward: a gradient for each of the three. To read: docs/course/functions.md
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight + bias

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("write this method")


def test():
    x, weight, bias = (torch.ones(*shape, requires_grad=True) for shape in ((4, 3), (3, 2), (2,)))
    shape = (
        "A gradient has the shape of its input: of x that is (4, 3) here, and of W (3, 2). Which "
        "factor has to be transposed?"
    )
    rows = "Each row adds the same bias: its gradient is a sum over the rows, of shape (2,)."
    y = Linear.apply(x, weight, bias)
    words = "invalid gradient", "cannot be multiplied"
    call(y.sum().backward, hints={"gradient at index 2": rows, **dict.fromkeys(words, shape)})
    # The doctor knows the rest, such as the bias, of which each row has its part.
    doctor(Linear, torch.randn(4, 3), torch.randn(3, 2), torch.randn(2))


if __name__ == "__main__":
    check(test)
