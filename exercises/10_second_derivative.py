"""Exercise 10: a second derivative that is silently wrong.

f(x) = x e^x. The first derivative of this Function is right, the second is not. Mend the Function.
To read: docs/course/clinic.md, about intermediate results
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import check, doctor


class TimesExp(Function):
    @staticmethod
    def forward(ctx, x):
        exp = x.exp()
        ctx.save_for_backward(x, exp)
        return x * exp

    @staticmethod
    def backward(ctx, grad_output):
        x, exp = ctx.saved_tensors
        return (1 + x) * exp * grad_output


def test():
    doctor(TimesExp, torch.randn(4, 3), asked=["second derivative"])


if __name__ == "__main__":
    check(test)
