"""Exercise 3: a backward that is never called.

Rounding is flat, so its derivative is 0 and nothing before it can be trained. To train all the
same, one lets the gradient pass unchanged, as if nothing were rounded. The author of Round wanted
that. Return x, rounded, with that gradient. To read: docs/course/called.md, functions.md
"""

import torch
from torch import nn

from styletransfer.lessons.exercises import call, check, equal, hint, leaf


class Round(nn.Module):
    """This was meant to have the gradient 1."""

    def forward(self, x):
        return x.round()

    def backward(self, grad_output):
        return grad_output


def rounded(x):
    """Return x, rounded. (Do it otherwise, so that the gradient passes.)"""
    return Round()(x)


def test():
    x = leaf(0.4, 1.7)
    y = call(rounded, x)
    equal(y, [0, 2], "The result")
    hint(
        y is x or x.tolist() != [0.4, 1.7], "x itself was changed, or returned: make a new tensor."
    )
    hint(
        not y.requires_grad,
        "The result has no graph: no_grad, detach, .data, item() and NumPy cut the path to x.",
    )
    call((y * torch.tensor([2, -3])).sum().backward)  # 2 and -3 come in
    hint(
        x.grad is None,
        "No gradient reaches x: a backward has returned None, or detach has cut the path, and "
        "requires_grad_\nhas begun a new graph behind the cut.",
    )
    hint(
        x.grad.tolist() == [0, 0],
        "The gradient is 0, that of round(). Autograd calls no method of a module, whatever its "
        "name: it runs the nodes\nof the operations. A backward of yours belongs into a "
        "torch.autograd.Function, which is called by apply.",
    )
    hint(
        x.grad.tolist() == [1, 1],
        "The gradient is 1 whatever comes in: backward ignores grad_output. Here 2 and -3 come in, "
        "and have to pass unchanged.",
    )
    equal(x.grad, [2, -3], "The gradient of 2 y[0] - 3 y[1]")


if __name__ == "__main__":
    check(test)
