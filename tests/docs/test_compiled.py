"""docs/course/functions.md, "Under torch.compile": each row of the table is what torch does."""

import numpy as np
import pytest
import torch
from lessons.planted import Square
from torch.autograd.function import once_differentiable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(torch.__version__ < "2.15", reason="the table is that of torch 2.15"),
]


class Wrong(Square):
    """x^2, whose derivative is wrong on purpose: 3 x tells that this backward was called."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x * grad_output


class Kept(Wrong):
    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.factor = x, 3
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.factor * ctx.x * grad_output if ctx.needs_input_grad[0] else None


class Constant(Wrong):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        index = x.argsort()
        ctx.mark_non_differentiable(index)
        return x * x, index

    @staticmethod
    def backward(ctx, grad_output, _):
        (x,) = ctx.saved_tensors
        return 3 * x * grad_output


class Once(Wrong):
    backward = staticmethod(once_differentiable(Wrong.backward))


class Foreign(Wrong):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.square(x.numpy()))


class Printing(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        print("called")
        return Wrong.backward(ctx, grad_output)


class Reading(Wrong):
    @staticmethod
    def forward(ctx, x):
        ctx.total = x.sum().item()
        ctx.save_for_backward(x)
        return x * x


COUNT = [0]


class Counting(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        COUNT[0] += 1
        return Wrong.backward(ctx, grad_output)


class Deciding(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x * grad_output if x.sum() > 0 else grad_output


class Nested(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            return grad_output * torch.autograd.grad((1.5 * x * x).sum(), x)[0]


class Interpolating(Wrong):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.interp(x.numpy(), [0.0, 9.0], [0.0, 9.0])).float()


class Marked(Wrong):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output


class Named(Marked):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x


class Sparing(Wrong):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, double, triple):
        return 2 * double if triple is None else 5 * double


class Guarded(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise RuntimeError("refused")
        return Wrong.backward(ctx, grad_output)


def compiled(function, **options):
    torch.compiler.reset()
    return torch.compile(function.apply, backend="aot_eager", **options)


def gradient(call, **options):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    result = call(x)
    result = result[0] if isinstance(result, tuple) else result
    return torch.autograd.grad(result.sum(), x, **options)[0]


@pytest.mark.parametrize("function", [Wrong, Kept, Constant, Once, Foreign])
def test_one_graph_has_the_gradient_of_backward(function):
    assert gradient(compiled(function, fullgraph=True)).tolist() == [3.0, 6.0]


@pytest.mark.parametrize("function", [Printing, Reading, Counting, Deciding, Nested, Interpolating])
def test_a_divided_graph_has_the_same_gradient(function):
    assert gradient(compiled(function)).tolist() == [3.0, 6.0]
    with pytest.raises(Exception, match=r"Explanation: |unbacked"):
        gradient(compiled(function, fullgraph=True))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch's
@pytest.mark.parametrize("function", [Marked, Named])
def test_a_changed_input_is_returned_by_its_name(function):
    def changed(x):
        return function.apply(1 * x)

    def run(**options):
        torch.compiler.reset()
        return gradient(torch.compile(changed, backend="aot_eager", **options)).tolist()

    assert run() == [3.0, 3.0]
    if function is Marked:
        with pytest.raises(Exception, match=r"Explanation: "):
            run(fullgraph=True)
    else:
        assert run(fullgraph=True) == [3.0, 3.0]


def test_a_compiled_backward_gets_zeros_for_none():
    assert gradient(Sparing.apply).tolist() == [2.0, 2.0]
    assert gradient(compiled(Sparing)).tolist() == [5.0, 5.0]


def test_a_compiled_guard_does_not_raise():
    with pytest.raises(RuntimeError, match="refused"):
        gradient(Guarded.apply, create_graph=True)
    first = gradient(compiled(Guarded), create_graph=True)
    assert first.tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="double backward"):
        first.sum().backward()
