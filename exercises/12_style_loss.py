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


def test():
    generator = torch.Generator().manual_seed(0)
    features, target = (torch.rand(shape, generator=generator) for shape in ((3, 5), (3, 3)))
    features.requires_grad_()
    call((2 * GramLoss.apply(features, target)).backward)
    difference = (features @ features.T / 15 - target).detach()
    grad_gram = 2 * 2 * difference / 9
    right = (grad_gram + grad_gram.T) @ features.detach() / 15
    hint(
        torch.allclose(features.grad, 2 * grad_gram @ features.detach() / 15),
        "This is right if G - target is symmetric, as if the target were a Gram matrix, too. F is "
        "in G twice:\none of the two terms has the transposed matrix.",
    )
    hint(
        torch.allclose(features.grad, right / 2),
        "The loss counts twice, and its gradient is that of a loss which counts once: grad_output "
        "is missing.",
    )
    doctor(GramLoss, features, target)


if __name__ == "__main__":
    check(test)
