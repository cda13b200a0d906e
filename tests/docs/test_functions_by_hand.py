"""torch's behaviour with a Function that does not follow the guide in docs/."""

import pytest
import torch
from comparing import written_functions
from torch import nn
from torch.autograd import Function

from styletransfer.features.extractor import max_pool


class Square(Function):
    """x^2, with a correct backward and a forward that takes ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def three():
    return torch.tensor(3.0, requires_grad=True)


def slope(function):
    x = three()
    function.apply(x).backward()
    return x.grad


def test_torch_func_takes_the_form_with_setup_context_alone():
    assert slope(Square) == 6
    x = torch.arange(4.0).view(1, 1, 2, 2)
    assert torch.func.grad(lambda x: max_pool(x).sum())(x).flatten().tolist() == [0, 0, 0, 1]
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.grad(Square.apply)(torch.tensor(3.0))


def test_every_function_of_the_package_has_a_setup_context():
    for function in written_functions().values():
        assert function.setup_context is not Function.setup_context


def test_a_forward_without_ctx_needs_a_setup_context():
    class Mixed(Function):
        @staticmethod
        def forward(x, target):
            return x * target

        backward = Square.backward

    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        Mixed.apply(three(), three())


def test_needs_input_grad_tells_which_gradients_are_due():
    seen: list[tuple[bool, ...]] = []

    class Product(Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            x, weight = ctx.saved_tensors
            return grad * weight, grad * x

    x, frozen = three(), torch.tensor(5.0)
    Product.apply(x, frozen).backward()
    Product.apply(x, three()).backward()
    assert seen == [(True, False), (True, True)]
    assert frozen.grad is None


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_a_backward_without_staticmethod_may_fail():
    class Lucky(Square):
        def backward(self, grad):
            (x,) = self.saved_tensors
            return 2 * x * grad

    class Unlucky(Square):
        def backward(self, ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    assert slope(Lucky) == 6
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'grad'"):
        slope(Unlucky)
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        Lucky()(three())


def test_a_near_tie_is_decided_by_the_last_bits():
    def pooled(second):
        x = torch.tensor([[[1.0, second]]], dtype=torch.float64, requires_grad=True)
        nn.functional.max_pool1d(x, 2).sum().backward()
        assert x.grad is not None
        return x.grad.flatten().tolist()

    assert pooled(1 - 1e-12) == [1, 0]
    assert pooled(1 + 1e-12) == [0, 1]
