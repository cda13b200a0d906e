"""Exercise 4: clamp.

Clamp.apply(x, low, high) limits the numbers of a tensor to the range from low to high, which are
plain numbers. Write backward: the derivative is 1 inside of the range, and 0 outside. At low and
high there is none, and either will do (torch's clamp has 1 there in 2.11, and 0 in 2.14).
To read: docs/course/functions.md
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor, equal, hint, leaf


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
        x.grad is not None and x.grad.tolist() == [1, 1, 1],
        "The gradient that comes in was limited. Limited is x: where x is outside of the range, "
        "the gradient is 0,\nand elsewhere it is that which comes in.",
    )
    one = "The gradient is 0 on both sides of the range; here one bound is forgotten."
    hint(x.grad is not None and x.grad.tolist() in ([3, 3, 0], [0, 3, 3]), one)
    equal(x.grad, [0, 3, 0], "The gradient at -2, 0.5 and 3, if 3 comes in,")
    doctor(Clamp, torch.linspace(-3, 3, 12).view(4, 3) + 0.1, -1, 1)


if __name__ == "__main__":
    check(test)
