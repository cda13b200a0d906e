"""Right Functions of the kinds that torch's documentation shows, which the doctor has to pass.

FunctionCtx, Function, "Extending PyTorch", "Extending torch.func", and the tutorials on new
Functions, on double backward and on NumPy: the formulas are theirs.
"""

import numpy as np
import torch
from torch.autograd import Function


def fixed(*shape):
    """Return seeded normal values."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


class Exp(Function):  # saves an output
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


class ClampedReLU(Function):  # changes a clone of grad_output in place
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = grad_output.clone()
        grad[x <= 0] = 0
        return grad


class Legendre(Function):  # the third polynomial, (5 x^3 - 3 x) / 2
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (5 * x**3 - 3 * x) / 2

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * x**2 - 1)


class Affine(Function):  # the bias may be missing
    inputs = (fixed(4, 3), fixed(2, 3), fixed(2))

    @staticmethod
    def forward(x, weight, bias=None):
        y = x @ weight.T
        return y if bias is None else y + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.has_bias = len(inputs) > 2 and inputs[2] is not None

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grads = grad_output @ weight, grad_output.T @ x, None
        return (*grads[:2], grad_output.sum(0)) if ctx.has_bias else grads


class AffineWithoutBias(Affine):
    inputs = (fixed(4, 3), fixed(2, 3), None)


class TimesConstant(Function):  # an input is no tensor, and a gradient may be None
    inputs = (fixed(4, 3), 5.5)

    @staticmethod
    def forward(x, constant):
        return x * constant

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.constant = inputs[1]

    @staticmethod
    def backward(ctx, grad_output):
        return None if grad_output is None else grad_output * ctx.constant, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * ctx.constant


class OneMore(Function):  # changes its input, and says so
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Sinh(Function):  # returns its intermediates, so that they can be differentiated again
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        up, down = x.exp(), (-x).exp()
        ctx.save_for_backward(up, down)
        return (up - down) / 2, up, down

    @staticmethod
    def backward(ctx, grad_output, grad_up, grad_down):
        up, down = ctx.saved_tensors
        return grad_output * (up + down) / 2 + grad_up * up - grad_down * down


def sinh(x):
    """Return sinh x alone."""
    return Sinh.apply(x)[0]


class CubeWithSlope(Function):  # the same, for vmap and in forward mode
    inputs = (fixed(4, 3),)
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])
        ctx.save_for_forward(*inputs, output[1])

    @staticmethod
    def backward(ctx, grad_output, grad_slope):
        x, slope = ctx.saved_tensors
        return grad_output * slope + grad_slope * 6 * x

    @staticmethod
    def jvp(ctx, tangent):
        x, slope = ctx.saved_tensors
        return tangent * slope, tangent * 6 * x


class Reciprocal(Function):  # its derivative is another Function
    inputs = (fixed(4, 3).abs() + 1,)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1 / x

    @staticmethod
    def backward(ctx, grad_output):
        return ReciprocalSlope.apply(grad_output, *ctx.saved_tensors)


class ReciprocalSlope(Function):
    inputs = (fixed(4, 3), fixed(4, 3).abs() + 1)

    @staticmethod
    def forward(ctx, grad_output, x):
        ctx.save_for_backward(grad_output, x)
        return -grad_output / x**2

    @staticmethod
    def backward(ctx, grad):
        grad_output, x = ctx.saved_tensors
        return -grad / x**2, 2 * grad * grad_output / x**3


class NumpySort(Function):  # NumPy in forward; the indices have no derivative
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        order = np.argsort(x.detach().numpy(), axis=0)
        found = [torch.tensor(each) for each in (order, np.argsort(order, axis=0))]
        ctx.mark_non_differentiable(*found)
        ctx.save_for_backward(*found)
        return x.gather(0, found[0]), *found

    @staticmethod
    def backward(ctx, grad_output, *_):
        order, back = ctx.saved_tensors
        return NumpyTake.apply(grad_output, back, order)


class NumpyTake(Function):
    order = torch.tensor([[2, 0, 1], [0, 1, 2], [1, 2, 0], [3, 3, 3]])
    inputs = (fixed(4, 3), order, order.argsort(0))

    @staticmethod
    def forward(ctx, x, order, back):
        ctx.save_for_backward(order, back)
        return torch.tensor(np.take_along_axis(x.detach().numpy(), order.numpy(), 0))

    @staticmethod
    def backward(ctx, grad_output):
        order, back = ctx.saved_tensors
        return NumpyTake.apply(grad_output, back, order), None, None


class Convolution(Function):  # in NumPy, forward and backward: one derivative only
    inputs = (fixed(8), fixed(3))

    @staticmethod
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        return torch.as_tensor(np.correlate(x.detach().numpy(), kernel.detach().numpy(), "valid"))

    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise RuntimeError("Convolution has no second derivative")
        x, kernel = (each.detach().numpy() for each in ctx.saved_tensors)
        grad = grad_output.numpy()
        grads = np.convolve(grad, kernel, "full"), np.correlate(x, grad, "valid")
        return tuple(map(torch.as_tensor, grads))


class Spectrum(Function):  # complex output
    inputs = (fixed(4, 3),)

    @staticmethod
    def forward(ctx, x):
        ctx.count = x.shape[1]
        return torch.fft.rfft(x)

    @staticmethod
    def backward(ctx, grad_output):
        return torch.fft.ifft(grad_output, ctx.count).real * ctx.count


class RowBias(Function):  # a side of 1 stays, if there are no examples
    inputs = (fixed(4, 3), fixed(1, 3))

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(0, keepdim=True)


RIGHT = {
    name: each
    for name, each in list(vars().items())
    if isinstance(each, type) and issubclass(each, Function) and each is not Function
}
