"""A backward whose second derivative is wrong, without an error."""

import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x  # neither an input nor an output
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx, grad_output):
        (square,) = ctx.saved_tensors
        return 3 * square * grad_output


x = torch.tensor(2.0, requires_grad=True)
(first,) = torch.autograd.grad(Cube.apply(x) * x, x, create_graph=True)
(second,) = torch.autograd.grad(first, x)
print(second.item(), "by hand 48")
