"""Exercise 10: a second derivative that is silently wrong.

f(x) = x e^x. The first derivative of this Function is right, the second is not. Mend the Function:
both are wanted, at each x. To read: docs/course/clinic.md, about intermediate results
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor, hint, leaf


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


def twice(x):
    (first,) = torch.autograd.grad(TimesExp.apply(x).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)


def test():
    x = leaf(0, 1)
    (first,) = call(torch.autograd.grad, TimesExp.apply(x).sum(), x)
    hint(bool(first.isnan().any()), "At 0 the first derivative is nan: a quotient there is 0 / 0.")
    refused = (
        "Here the second derivative is refused. That is better than a wrong one, but it is wanted: "
        "which of the saved\ntensors is neither an input nor an output?"
    )
    cut = (
        "Here the second derivative is refused, since the first has no graph: once_differentiable, "
        "no_grad, detach or NumPy has cut it.\nThat is better than a wrong one, but it is wanted."
    )
    call(twice, x, hints={"does not require grad": cut, "": refused})
    doctor(TimesExp, torch.randn(4, 3), asked=["second derivative"])


if __name__ == "__main__":
    check(test)
