"""Exercise 9: the fourth way to carry a loss.

You know the method that is called by hand, the attribute, and the tap. Here a hook on the features
brings the loss's gradient in, while a backward pass of zeros goes by. One line is missing.
To read: docs/course/modules.md
"""

import torch
from torch import nn
from torch.nn.functional import mse_loss

from styletransfer.lessons.exercises import call, check, equal, hint


class HookLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target

    def forward(self, features):
        leaf = features.detach().requires_grad_()
        self.loss = mse_loss(leaf, self.target)
        (grad_loss,) = torch.autograd.grad(self.loss, leaf)
        # Make use of grad_loss here, by a hook on the features.
        return features


def test():
    x = torch.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True)
    target = torch.zeros(4)  # by hand: d(mean x^2)/dx = x / 2, d(mean (3 x)^2)/dx = 9 x / 2
    first, second = HookLoss(target), HookLoss(target)
    output = call(second, 3 * call(first, x * 1))
    zeros = torch.zeros(4)
    call(output.backward, zeros)
    hint(
        bool(zeros.any()),
        "The zeros that the pass began with are zeros no more: a hook has changed its argument in "
        "place. Other nodes\nmay receive the same tensor, so a hook returns a new one.",
    )
    hint(
        torch.equal(x.grad, 0 * x),
        "The gradient is 0, as it came in: no hook has changed it. A hook that returns None leaves "
        "the gradient\nas it is, and one that multiplies 0 gets 0.",
    )
    hint(
        torch.equal(x.grad, x / 2),
        "This is the gradient of the first loss alone. What a hook returns takes the place of the "
        "gradient,\nso the second loss's, which came from deeper, is lost.",
    )
    equal(x.grad, [5, 10, 20, 40], "The sum of both losses' gradients at 1, 2, 4, 8")


if __name__ == "__main__":
    check(test)
