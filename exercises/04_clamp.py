"""Exercise 4: clamp.

Clamp.apply(x, low, high) limits the numbers of a tensor to the range from low to high, which are
plain numbers. Write backward: the derivative is 1 inside of the range, which includes low and high
(as torch's clamp has it), and 0 outside.
To read: docs/course/functions.md
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor, hint, leaf


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("write this method")


def test():
    x = leaf(-2, 0.5, 3)
    count = "forward has three inputs. Return a gradient for each: None for those that need none."
    y = Clamp.apply(x, -1, 1)
    call((3 * y).sum().backward, hints={"incorrect number of gradients": count})
    hint(
        x.grad.tolist() == [1, 1, 1],
        "The gradient that comes in was limited. Limited is x: where x is outside of the range, "
        "the gradient is 0,\nand elsewhere it is that which comes in.",
    )
    assert x.grad.tolist() == [0, 3, 0]
    edges = leaf(-1, 1)
    Clamp.apply(edges, -1, 1).sum().backward()
    hint(edges.grad.tolist() != [1, 1], "The derivative is 1 at low and at high, too.")
    doctor(Clamp, torch.linspace(-3, 3, 12).view(4, 3) + 0.1, -1, 1)


if __name__ == "__main__":
    check(test)
