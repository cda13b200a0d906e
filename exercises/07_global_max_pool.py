"""Exercise 7: the largest value of each channel, and where it was.

Largest.apply(x), for x of shape (C, n), returns the largest value of each channel, (C,), and its
index, (C,). Write backward. To read: docs/course/functions.md, about pooling
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor, equal, hint


class Largest(Function):
    @staticmethod
    def forward(ctx, x):
        value, index = x.max(1)
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(x, value, index)  # save less, if you need less
        return value, index

    @staticmethod
    def backward(ctx, *arguments):
        raise NotImplementedError("write this method")


def test():
    x = torch.tensor([[1.0, 5.0, 5.0], [4.0, 2.0, 3.0]], requires_grad=True)
    value, index = Largest.apply(x)
    two = (
        "forward returns two tensors, so backward receives a gradient for each of them, also for "
        "the index, where it is of no use."
    )
    call((3 * value).sum().backward, hints={"positional argument": two})
    hint(
        x.grad.sum().item() == 9,
        "Two values are equal, and both got the whole gradient. Forward took one of them: the "
        "index tells which.",
    )
    winners = [[3 * (place == at) for place in range(3)] for at in index.tolist()]
    equal(x.grad, winners, f"With 3 for each value, and indices {index.tolist()}, the gradient")
    doctor(Largest, torch.randn(3, 5))


if __name__ == "__main__":
    check(test)
