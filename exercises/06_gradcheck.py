"""Exercise 6: a check that a right backward does not pass.

Return True for a Function whose backward is right, and False for one whose backward is wrong. x is
in float32. To read: docs/course/functions.md
"""

import torch
from torch.autograd import Function, gradcheck

from styletransfer.lessons.exercises import call, check, hint


def is_right(function, x):
    """Return whether the backward of a Function is right. (This refuses all of them.)"""
    return gradcheck(function.apply, x)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output


class WrongCube(Cube):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.9 * x**2 * grad_output


def test():
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    rounding = (
        "This backward is right. A number of float32 has seven digits: after a step of 1e-6, "
        "rounding makes the quotient\nof differences wrong. There is a type with sixteen digits."
    )
    hint(not call(is_right, Cube, x, hints={"Jacobian mismatch": rounding}), rounding)
    large = "WrongCube has 2.9 x^2 for 3 x^2, and the tolerance is so large that it passes."
    refused = (
        "For a wrong backward gradcheck raises this error. Catch it, or tell gradcheck "
        "raise_exception=False; return False."
    )
    wrong = call(is_right, WrongCube, x, hints={"Jacobian mismatch": refused})
    hint(wrong, large)


if __name__ == "__main__":
    check(test)
