"""Two outputs: the largest value of each channel, and where it was, which has no derivative."""

import torch


class GlobalMaxPool(torch.autograd.Function):
    @staticmethod
    def forward(x):  # (N, C, H, W) -> values (N, C), indices (N, C)
        values, indices = x.flatten(2).max(dim=2)
        return values, indices

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,), (_, indices) = inputs, output
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx, grad_values, grad_indices):  # one argument for each output, used or not
        (indices,) = ctx.saved_tensors
        grad = grad_values.new_zeros(ctx.shape).flatten(2)
        grad = grad.scatter(2, indices[..., None], grad_values[..., None])
        return grad.view(ctx.shape)  # only the winner is moved by a small step


x = torch.tensor([[[[1.0, 4.0], [3.0, 2.0]]]], requires_grad=True)
values, indices = GlobalMaxPool.apply(x)
values.sum().backward()
print(values.item(), indices.item(), indices.requires_grad, x.grad.tolist())
