"""Exercise 3: a backward that is never called.

Rounding is flat, so its derivative is 0 and nothing before it can be trained. To train all the
same, one lets the gradient pass unchanged, as if nothing were rounded. The author of Round wanted
that. Return x, rounded, with that gradient. To read: docs/course/called.md, functions.md
"""

from torch import nn

from styletransfer.lessons.exercises import call, check, hint, leaf


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
    assert y.tolist() == [0, 2]
    hint(
        not y.requires_grad,
        "The result has no graph: detach, .data, item() and NumPy cut the path to x.",
    )
    y.sum().backward()
    hint(
        x.grad is None,
        "The result requires a gradient, but no path leads from it to x: detach has cut it, and "
        "requires_grad_\nhas begun a new graph behind the cut.",
    )
    hint(
        x.grad.tolist() == [0, 0],
        "The gradient is 0, that of round(). Autograd calls no method of a module, whatever its "
        "name: it runs the nodes\nof the operations. A backward of yours belongs into a "
        "torch.autograd.Function, which is called by apply.",
    )
    assert x.grad.tolist() == [1, 1]


if __name__ == "__main__":
    check(test)
