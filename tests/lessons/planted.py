"""Functions with one fault each, which the doctor has to name, and right ones."""

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class WrongFactor(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.001 * x * grad_output


class SavedIntermediate(Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx, grad_output):
        (square,) = ctx.saved_tensors
        return 3 * square * grad_output


class Marked(SavedIntermediate):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (square,) = ctx.saved_tensors
        return 3 * square * grad_output


class Guarded(SavedIntermediate):
    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise RuntimeError("Guarded has no second derivative")
        (square,) = ctx.saved_tensors
        return 3 * square * grad_output


class DetachedBackward(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x.detach() * grad_output


class Corner(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.masked_fill(x < 0, 0)


class WrongReLU(Corner):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * grad_output.masked_fill(x <= 0, 0)


class SpoiledGrad(Corner):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.masked_fill_(x <= 0, 0)


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class SpoiledData(Doubled):
    """A change through `.data` leaves the version of a tensor as it was."""

    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise RuntimeError("SpoiledData has no second derivative")
        grad_output.data.mul_(2)
        return grad_output.clone()


class ViewedDoubled(Doubled):
    @staticmethod
    def backward(ctx, grad_output):
        return (2 * grad_output.view(-1)).view(grad_output.shape)


class Unmarked(Doubled):
    @staticmethod
    def forward(ctx, x):
        return x.mul_(2)


class MarkedDirty(Unmarked):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)


class Bias(Function):
    inputs = (torch.linspace(-2, 3, 12).view(4, 3), torch.linspace(-1, 2, 3))

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(0)


class SummedShape(Bias):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


class MissingGradient(Bias):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class OneForTwo(Bias):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Halves(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, grad_double, grad_triple):
        return 2 * grad_double + 3 * grad_triple


class WrongHalves(Halves):
    @staticmethod
    def forward(ctx, x):
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, grad_double, grad_triple):
        return 2 * grad_double + 4 * grad_triple


class Cycle(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = x.exp()
        return ctx.result

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.result


class Attribute(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.both = (x, 1)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.both[0] * grad_output


class Dictionary(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = {"x": x}
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.kept["x"] * grad_output


class Closure(Cycle):
    """A function on ctx keeps the output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.slope = lambda grad_output: grad_output * y
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.slope(grad_output)


class OnClass(Square):
    """The next call of forward overwrites what this one keeps."""

    @staticmethod
    def forward(ctx, x):
        OnClass.x = x
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * OnClass.x * grad_output


class Larger(Square):
    """Each call of backward returns more."""

    @staticmethod
    def backward(ctx, grad_output):
        ctx.count = getattr(ctx, "count", 0) + 1
        return ctx.count * Square.backward(ctx, grad_output)


class Rounded(Square):
    """Difference quotients of float32 are no measure."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.float() ** 2).to(x.dtype)


class Steps(Doubled):
    """Its results are numbers of float32, too, but its difference quotients are exact: 0."""

    @staticmethod
    def forward(ctx, x):
        return (4 * x).round() / 4


class Unrecorded(Square):
    """The results of backward have no graph, as those of NumPy."""

    @staticmethod
    def backward(ctx, grad_output):
        with torch.no_grad():
            return Square.backward(ctx, grad_output)


class Frozen(Bias):
    """Saves of a product what the other factor's gradient needs."""

    @staticmethod
    def forward(ctx, x, factor):
        needs_x, needs_factor = ctx.needs_input_grad
        ctx.save_for_backward(x if needs_x else None, factor if needs_factor else None)
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        x, factor = ctx.saved_tensors
        needs_x, needs_factor = ctx.needs_input_grad
        return grad_output * factor if needs_x else None, (
            (grad_output * x).sum(0) if needs_factor else None
        )


class Dense(Square):
    """Reads the memory of an input with gaps as if it had none."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        if x.stride(0) > x.shape[1]:
            x = x.as_strided(x.shape, (x.shape[1], 1))
        return 2 * x * grad_output


class Neighbours(Function):
    """Saves two views of its input, which takes no memory."""

    @staticmethod
    def forward(ctx, x):
        left, right = x[:, :-1], x[:, 1:]
        ctx.save_for_backward(left, right)
        return left * right

    @staticmethod
    def backward(ctx, grad_output):
        left, right = ctx.saved_tensors
        pad = nn.functional.pad
        return pad(grad_output * right, (0, 1)) + pad(grad_output * left, (1, 0))


class Viewed(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (2 * x.reshape(-1) * grad_output.view(-1)).reshape(x.shape)


class AlwaysDouble(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x.double() * grad_output


class NotForEmpty(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output + 0 * grad_output.max()


class Listed(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return [x * x]


class WrongJvp(Square):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return x * tangent


class RightJvp(WrongJvp):
    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent


class WrongBackward(RightJvp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * grad_output


class BothWrong(WrongBackward):
    jvp = WrongJvp.jvp


class WithoutTangent(RightJvp):
    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x


class Gated(Bias):
    """The derivative for the gate is 0."""

    @staticmethod
    def forward(ctx, x, gate):
        return 2 * x + (gate > 0).to(x)

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output, None


class AttributeOfSetup(RightJvp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        RightJvp.setup_context(ctx, inputs, output)
        (ctx.x,) = inputs


class UnmarkedOfSetup(Doubled):
    @staticmethod
    def forward(x):
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


class WrongVmap(RightJvp):
    """The first example's result, for all of them."""

    @staticmethod
    def vmap(info, in_dims, x):
        return WrongVmap.apply(x.select(in_dims[0], 0)), None


class BothBatched(Bias):
    """Takes no bias that all examples share."""

    @staticmethod
    def forward(x, bias):
        return x + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x, bias):
        return x.movedim(in_dims[0], 0) + bias.movedim(in_dims[1], 0)[:, None], 0


class FirstDimension(RightJvp):
    """The examples are looked for in the first dimension, wherever they are."""

    @staticmethod
    def vmap(info, in_dims, x):
        return FirstDimension.apply(x), 0


class Batched(RightJvp):
    generate_vmap_rule = True


class Same(Doubled):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class WrongGated(Gated):
    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output, None


class HarmlessIntermediate(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, (x > 0).to(x))
        return x.clamp(min=0) ** 3

    @staticmethod
    def backward(ctx, grad_output):
        x, mask = ctx.saved_tensors
        return 3 * (x * x).detach() * mask * grad_output


def cut_off(x):
    return x + Square.apply(x).detach()


def cut_beside(x):
    return WrongFactor.apply(x).detach() + Square.apply(x)


def viewed_beside(x):
    return Square.apply(x).view(-1)


def beside_a_constant(x):
    return 2 * x + Square.apply(torch.ones(3, requires_grad=True))


def not_applied(x):
    return RightJvp.forward(x)


class FakeLayer(nn.Module):
    def forward(self, x):
        return x * x

    def backward(self, grad_output):
        return grad_output


def sized(size):
    return torch.ones(size)
