"""`setup_context` and `needs_input_grad`: x * w with a gradient for each of its two inputs."""

import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, weight):  # no ctx: forward only computes
        return x * weight

    @staticmethod
    def setup_context(ctx, inputs, output):  # and what backward will need is kept here
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output * weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_output * x if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


x = torch.tensor([1.0, 2.0], requires_grad=True)
frozen = torch.tensor([5.0, 7.0])
Scale.apply(x, frozen).sum().backward()  # needs_input_grad is (True, False)
print(x.grad.tolist(), frozen.grad)
