"""Exercise 8: a tap, which returns its input and a loss.

Tap.apply(features, target) returns the features for the next layer, and beside them their loss, the
mean of (features - target)^4. Write backward. To read: docs/course/modules.md
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor, hint


class Tap(Function):
    @staticmethod
    def forward(ctx, features, target):
        ctx.save_for_backward(features, target)
        return features.view_as(features), ((features - target) ** 4).mean()

    @staticmethod
    def backward(ctx, grad_features, grad_loss):
        raise NotImplementedError("write this method; the target needs no gradient")


def test():
    x, target = torch.full((3, 2), 4.0, requires_grad=True), torch.ones(3, 2)
    features, loss = Tap.apply(x, target)
    count = "forward has two inputs. Return a gradient for each: None for the target."
    total = 7 * features.sum() + 2 * loss  # by hand, the gradient is 7 + 2 * 18
    call(total.backward, hints={"incorrect number of gradients": count})
    hint(
        torch.equal(x.grad, torch.full((3, 2), 36.0)),
        "This is the loss's gradient alone. That of the deeper layers, which comes in as "
        "grad_features, ends here.",
    )
    hint(
        torch.equal(x.grad, torch.full((3, 2), 25.0)),
        "The loss counts twice in the total, and its gradient is that of a loss which counts once: "
        "grad_loss is missing.",
    )
    hint(
        torch.equal(x.grad, torch.full((3, 2), 223.0)),
        "This is the gradient of a sum: the mean divides by the number of features, and so does "
        "its gradient.",
    )
    doctor(Tap, torch.randn(3, 2, requires_grad=True), target.double())


if __name__ == "__main__":
    check(test)
