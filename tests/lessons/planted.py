"""Functions with one fault each, which the doctor has to name, and right ones."""

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint


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
    """Reads the memory of an input as if it had no gaps."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x.as_strided(x.shape, (x.shape[1], 1)) * grad_output


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


class Log(Square):
    """It is defined for x > 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.log()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output / ctx.saved_tensors[0]


class Acosh(Square):
    """It is defined for x > 1."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.acosh()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output / (ctx.saved_tensors[0].square() - 1).sqrt()


class Nowhere(Doubled):
    @staticmethod
    def forward(ctx, x):
        return x * torch.nan


class Length(Square):
    """The gradient at 0 is 0 / 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.norm()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x / x.norm()


class LengthAtZero(Length):
    inputs = (torch.zeros(3),)


class Overflowing(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return nn.functional.softplus(x)

    @staticmethod
    def backward(ctx, grad_output):
        exp = ctx.saved_tensors[0].exp()
        return grad_output * exp / (1 + exp)


class Single(Square):
    """It takes float32 alone, as many kernels."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype != torch.float32:
            raise TypeError("expected a tensor of float32")
        return Square.forward(ctx, x)


class WrongSingle(Single):
    backward = WrongReLU.backward


class OnCuda(Square):
    @staticmethod
    def forward(ctx, x):
        if not x.is_cuda:
            raise ValueError("expected a CUDA tensor")
        return Square.forward(ctx, x)


class Fast(Square):
    """It changes by 1.3 % of its size within the step of a difference quotient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (2**14 * x).sin()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2**14 * (2**14 * ctx.saved_tensors[0]).cos()


class Dropped(Square):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand_like(x)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0]


class DrawnAgain(Dropped):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * torch.rand_like(grad_output)


class Emptied(Square):
    """A second call of backward fails."""

    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2 * x
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        factor = ctx.factor
        del ctx.factor
        return grad_output * factor


class Product(Function):
    inputs = (
        torch.complex(torch.linspace(1, 2, 3), torch.linspace(-1, 1, 3)),
        torch.complex(torch.linspace(-2, 1, 3), torch.linspace(3, 1, 3)),
    )

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b.conj(), grad_output * a.conj()


class NoConjugate(Product):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a


class Ignored(Square):
    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.saved_tensors[0]


class Absolute(Doubled):
    """It is right for a grad_output that is not negative."""

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output.abs()


class MeanForSum(Bias):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.mean(0)


class Negated(Square):
    @staticmethod
    def backward(ctx, grad_output):
        return -Square.backward(ctx, grad_output)


class ConstantLoss(Same):
    @staticmethod
    def forward(ctx, x):
        loss = x.square().mean()
        ctx.mark_non_differentiable(loss)
        return x.clone(), loss

    @staticmethod
    def backward(ctx, grad_output, _):
        return grad_output


class Matmul(Function):
    inputs = (torch.linspace(-2, 3, 12).view(4, 3), torch.linspace(-1, 2, 6).view(2, 3))

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.T @ x


class CastMatmul(Matmul):
    forward = staticmethod(torch.amp.custom_fwd(Matmul.forward, device_type="cpu"))
    backward = staticmethod(torch.amp.custom_bwd(Matmul.backward, device_type="cpu"))


class Centered(Function):
    """It keeps a running mean, which needs no gradient, in a buffer."""

    inputs = (torch.linspace(-2, 3, 12).view(4, 3).requires_grad_(), torch.zeros(3))

    @staticmethod
    def forward(ctx, x, mean):
        mean.mul_(0.9).add_(0.1 * x.mean(0))
        return x - x.mean(0)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.mean(0), None


class Row(Function):
    inputs = (torch.linspace(-2, 3, 12).view(4, 3), torch.tensor([0, 3, 3]))

    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(index[None], grad_output, ctx.shape), None


class Sparse(Function):
    """A constant sparse matrix times a dense one."""

    matrix = torch.tensor([[0.0, 2, 0], [1, 0, 3], [0, 0, 4]]).to_sparse()
    inputs = (matrix, torch.linspace(-2, 3, 6).view(3, 2).requires_grad_())

    @staticmethod
    def forward(ctx, matrix, x):
        ctx.save_for_backward(matrix)
        return torch.sparse.mm(matrix, x)

    @staticmethod
    def backward(ctx, grad_output):
        (matrix,) = ctx.saved_tensors
        return None, torch.sparse.mm(matrix.t(), grad_output)


class WrongSparse(Sparse):
    @staticmethod
    def backward(ctx, grad_output):
        (matrix,) = ctx.saved_tensors
        return None, torch.sparse.mm(matrix, grad_output)


class Widened(Square):
    """In half precision its gradient is in float32, as its result."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, 2.0, 3.0) * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, 2.0, 3.0) * grad_output


class SpoiledDouble(Doubled):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.mul_(2)


class Measured(Doubled):
    """Forward waits for the largest number."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x if x.sum().item() < 1e9 else x


class MeasuredBackward(Doubled):
    """Backward waits for the largest number."""

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output if grad_output.sum().item() < 1e9 else grad_output


class Printing(Doubled):
    """torch.compile cannot take what is printed into a graph."""

    @staticmethod
    def forward(ctx, x):
        print(end="")
        return 2 * x


class Checkpointed(nn.Module):
    """Its backward runs a part of forward again, with the module's own parameters."""

    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        return self.last(checkpoint(lambda x: self.layer(x).tanh(), x, use_reentrant=False))


class Keeper(nn.Module):
    """A loss layer, which returns its input and keeps the loss of a Function."""

    def __init__(self, function):
        super().__init__()
        self.function, self.loss = function, None

    def forward(self, x):
        self.loss = self.function.apply(x).sum()
        return x


class Appender(Keeper):
    """It keeps the losses of all calls in a list, whose name begins with _."""

    def __init__(self, function):
        super().__init__(function)
        self._losses = []

    def forward(self, x):
        self._losses.append(self.function.apply(x).sum())
        return x


class History(nn.Module):
    """It keeps results without their graphs, and makes a tensor once."""

    def __init__(self):
        super().__init__()
        self.seen, self.grid = {}, None

    def forward(self, x):
        if self.grid is None:
            self.grid = x.new_ones(3)
        self.seen["last"] = x.detach()
        return Square.apply(x) * self.grid


KEEPER = Keeper(WrongReLU)


def through_a_keeper(x):
    return KEEPER(x).sin()


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
