"""Exercise 8: a tap, which returns its input and a loss.

Tap.apply(features, target) returns the features for the next layer, and beside them their loss, the
mean of (features - target)^2. Write backward. To read: docs/course/modules.md
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor, hint


class Tap(Function):
    @staticmethod
    def forward(ctx, features, target):
        ctx.save_for_backward(features, target)
        return features.view_as(features), (features - target).square().mean()

    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        raise NotImplementedError("write this method; the target needs no gradient")


def test():
    x, target = torch.full((3, 2), 4.0, requires_grad=True), torch.ones(3, 2)
    features, loss = Tap.apply(x, target)
    call((7 * features.sum() + 2 * loss).backward)  # by hand: 7 + 2 * (2 * 3 / 6) = 9
    hint(
        torch.equal(x.grad, torch.full((3, 2), 2.0)),
        "This is the loss's gradient alone. That of the deeper layers, which comes in as "
        "grad_features, ends here.",
    )
    hint(
        torch.equal(x.grad, torch.full((3, 2), 8.0)),
        "The loss counts twice in the total, and its gradient is that of a loss which counts once: "
        "grad_loss is missing.",
    )
    doctor(Tap, torch.randn(3, 2, requires_grad=True), target.double())


if __name__ == "__main__":
    check(test)
