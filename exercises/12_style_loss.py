"""Exercise 12: a style loss in closed form.

G = F F^T / (C n) is the Gram matrix of features F of shape (C, n), and the loss is the mean of
(G - target)^2 over its C^2 numbers. Write backward, by a formula, without autograd. The target need
not be symmetric. To read: docs/course/functions.md, about the moments tap; docs/backward.md
"""

import torch
from torch.autograd import Function

from styletransfer.lessons.exercises import call, check, doctor, hint


class GramLoss(Function):
    @staticmethod
    def forward(ctx, features, target):
        ctx.save_for_backward(features, target)
        gram = features @ features.T / features.numel()
        return (gram - target).square().mean()

    @staticmethod
    def backward(ctx, grad_output):
        raise NotImplementedError("write this method; the target needs no gradient")


def is_right(gradient, features, target):
    """Return whether a gradient is that of forward's operations."""
    gram = features @ features.T / features.numel()
    return torch.allclose(gradient, *torch.autograd.grad((gram - target).square().mean(), features))


def test():
    generator = torch.Generator().manual_seed(0)
    features, target = (torch.rand(shape, generator=generator) for shape in ((3, 5), (3, 3)))
    features.requires_grad_()

    def gradient(target, times=1):
        loss = times * GramLoss.apply(features, target)
        return call(torch.autograd.grad, loss, features)[0]

    hint(
        torch.equal(gradient(target, 2), gradient(target)),
        "A loss that counts twice gets the gradient of one that counts once: no grad_output.",
    )
    symmetric = target + target.T
    hint(
        is_right(gradient(symmetric), features, symmetric)
        and not is_right(gradient(target), features, target),
        "This is right if G - target is symmetric, as if the target were a Gram matrix, too. F is "
        "in G twice:\none of the two terms has the transposed matrix.",
    )
    hint(
        is_right(gradient(target) / target.numel(), features, target),
        "This is the gradient of a sum: the mean divides by C^2, and so does its gradient.",
    )
    doctor(GramLoss, features, target)


if __name__ == "__main__":
    check(test)
