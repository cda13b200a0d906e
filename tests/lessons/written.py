"""Functions and modules of the kinds that people write, right ones and faulty ones.

Each class names its inputs. A right one may be a surrogate; a faulty one names the row of the
doctor's report, words of it, and the method that has to be changed.
"""

import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional


def fixed(*shape, dtype=torch.float64):
    """Return seeded normal values."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=dtype)


# Right.


class Swish(Function):
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        sigmoid = x.sigmoid()
        return grad_output * (sigmoid + x * sigmoid * (1 - sigmoid))


class FakeQuantize(Function):  # straight-through inside of the range
    inputs = (fixed(4, 3), 0.25, -3, 4)
    surrogates = ("FakeQuantize",)

    @staticmethod
    def forward(ctx, x, scale, low, high):
        steps = (x / scale).round()
        ctx.save_for_backward((steps >= low) & (steps <= high))
        return steps.clamp(low, high) * scale

    @staticmethod
    def backward(ctx, grad_output):
        (inside,) = ctx.saved_tensors
        return grad_output * inside, None, None, None


class SmoothedCrossEntropy(Function):  # whole numbers are the targets
    inputs = (fixed(5, 3), torch.tensor([0, 2, 1, 1, 0]), 0.1)

    @staticmethod
    def forward(ctx, logits, target, smoothing):
        count = logits.shape[1]
        wanted = functional.one_hot(target, count) * (1 - smoothing) + smoothing / count
        ctx.save_for_backward(logits, wanted.to(logits))
        return -(wanted * logits.log_softmax(1)).sum(1).mean()

    @staticmethod
    def backward(ctx, grad_output):
        logits, wanted = ctx.saved_tensors
        return grad_output * (logits.softmax(1) - wanted) / logits.shape[0], None, None


class SegmentMean(Function):
    inputs = (fixed(5, 3), torch.tensor([0, 2, 1, 1, 0]), 3)

    @staticmethod
    def forward(ctx, x, segment, count):
        sizes = torch.bincount(segment, minlength=count).to(x).clamp(min=1)
        ctx.save_for_backward(segment, sizes)
        return x.new_zeros(count, x.shape[1]).index_add(0, segment, x) / sizes[:, None]

    @staticmethod
    def backward(ctx, grad_output):
        segment, sizes = ctx.saved_tensors
        return (grad_output / sizes[:, None])[segment], None, None


class ModReLU(Function):  # complex numbers, and a real bias
    inputs = (fixed(4, 3, dtype=torch.complex128), fixed(3))

    @staticmethod
    def forward(ctx, z, bias):
        ctx.save_for_backward(z, bias)
        return (z.abs() + bias).clamp(min=0) * z / z.abs()

    @staticmethod
    def backward(ctx, grad_output):
        z, bias = ctx.saved_tensors
        size, way = z.abs(), z / z.abs()
        mask = (size + bias > 0).to(size)
        along = (grad_output * way.conj()).real
        across = (grad_output - along * way) * (size + bias) / size
        return mask * (along * way + across), (mask * along).sum(0)


class MaskedSoftmax(Function):  # the mask may be missing
    inputs = (fixed(4, 3), None)

    @staticmethod
    def forward(ctx, x, mask=None):
        y = (x if mask is None else x.masked_fill(mask, -1e9)).softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True)), None


class InPlaceLeaky(Function):
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        functional.leaky_relu_(x, 0.2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output, 0.2 * grad_output)


class Scaled(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return 0.1 * grad_output


class Tamed(nn.Module):  # keeps a loss, and passes a tenth of the gradient on
    inputs = (fixed(4, 3),)
    surrogates = ("Scaled",)

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        y = self.layer(x)
        self.loss = Swish.apply(Scaled.apply(y)).square().mean()
        return y


# Faulty.


class FocalLoss(Function):
    inputs = (fixed(4, 3),)
    fault = "first derivative", "is 12 times the derivative of forward: a sum", "backward"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.sigmoid() ** 2 * functional.softplus(x)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        p = x.sigmoid()
        return grad_output * p**2 * (2 * (1 - p) * functional.softplus(x) + p)


class Gather(Function):  # a row that is taken twice gets one gradient
    inputs = (fixed(5, 3), torch.tensor([0, 2, 2, 4]))
    fault = "first derivative", "(3 of 15 numbers; at [2, ", "backward"

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.shape)
        grad[index] = grad_output
        return grad, None


class Huber(Function):  # the sign of the linear branch is lost
    inputs = (fixed(4, 3),)
    fault = "first derivative", "is not the derivative of forward", "backward"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x.abs() < 1, x * x / 2, x.abs() - 0.5)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.where(x.abs() < 1, x, 1)


class WrongTap(Function):
    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return (x - target).square().mean()

    @staticmethod
    def backward(ctx, grad_output):
        x, target = ctx.saved_tensors
        return grad_output * (x - target) / x.numel(), None


class Keeper(nn.Module):  # a loss of a child, in a list
    inputs = (fixed(4, 3),)
    fault = "first derivative", "is 0.5 times the derivative of forward", "WrongTap.backward"

    class Layer(nn.Module):
        def forward(self, x):
            self.losses = [WrongTap.apply(x, torch.zeros_like(x))]
            return x

    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(3, 3), Keeper.Layer(), nn.Tanh())

    def forward(self, x):
        return self.network(x)


class Polar(Function):  # the gradients of its two outputs are exchanged
    inputs = (fixed(4), fixed(4).flip(0))
    fault = "first derivative", "is not the derivative of forward", "backward"

    @staticmethod
    def forward(ctx, radius, angle):
        ctx.save_for_backward(radius, angle)
        return radius * angle.cos(), radius * angle.sin()

    @staticmethod
    def backward(ctx, grad_y, grad_x):
        radius, angle = ctx.saved_tensors
        across = grad_y * angle.cos() - grad_x * angle.sin()
        return grad_x * angle.cos() + grad_y * angle.sin(), radius * across


class Energy(Function):  # of a complex number the real part alone gets a gradient
    inputs = (fixed(4, dtype=torch.complex128),)
    fault = "first derivative", "(4 of 8 numbers; at [", "backward"

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return (z * z.conj()).real

    @staticmethod
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        return (2 * grad_output * z.real).to(z.dtype)


class UnitLength(Function):  # the length is saved, and taken for a constant
    inputs = (fixed(4, 3),)
    fault = "second derivative", "it may take what forward saves for a constant", "backward"

    @staticmethod
    def forward(ctx, x):
        length = x.square().sum(-1, keepdim=True).add(1e-6).sqrt()
        ctx.save_for_backward(x, length)
        return x / length

    @staticmethod
    def backward(ctx, grad_output):
        x, length = ctx.saved_tensors
        along = (grad_output * x).sum(-1, keepdim=True)
        return grad_output / length - x * along / length**3


WRITTEN = {
    name: each
    for name, each in list(vars().items())
    if isinstance(each, type) and each.__module__ == __name__ and "inputs" in vars(each)
}
