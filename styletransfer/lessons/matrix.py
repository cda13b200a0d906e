"""Which derivative does torch use: a given one, or its own? Six ways to give it, in eleven calls.

`python -m styletransfer.lessons.matrix` prints the table. Each way computes the sum of x^2, and the
derivative that it gives is wrong on purpose: 3 x. Where a call returns 3 x, torch used it; where
it is 2 x, torch differentiated the operations of forward. The second derivative is 3 or 2.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

Ask = Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]
VERDICTS = {3.0: "ours", 2.0: "forward's", 0.0: "0"}


class Loss(nn.Module):
    """This loss layer keeps its loss in `.loss`, as in the PyTorch 0.4 tutorial."""

    loss: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Keep the loss and return x unchanged."""
        self.loss = x.square().sum()
        return x

    def of(self, x: Tensor) -> Tensor:
        """Run the layer and return the loss that it keeps."""
        self(x)
        return self.loss


class FakeLoss(Loss):
    """This loss layer has a method `backward`, as in the PyTorch 0.3 tutorial."""

    def backward(self, x: Tensor) -> Tensor:
        """Return 3 x; no code calls this method."""
        return 3 * x


class Square(nn.Module):
    """This module computes x^2; `with_module_hook` registers a hook on it."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x^2."""
        return x.square()


class WrongSquare(torch.autograd.Function):
    """This Function computes x^2, and its backward a wrong derivative, 3 x."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Return x^2."""
        return x.square()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save x."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Return 3 x times the gradient of the output."""
        (x,) = ctx.saved_tensors
        result: Tensor = 3 * x * grads[0]
        return result


@torch.library.custom_op("styletransfer_lessons::square", mutates_args=())
def square(x: Tensor) -> Tensor:
    """Return x^2 by a custom operator, whose derivative is registered as 3 x."""
    return x.square()


square.register_fake(torch.empty_like)
square.register_autograd(
    lambda ctx, grad: 3 * ctx.saved_tensors[0] * grad,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def with_tensor_hook(x: Tensor) -> Tensor:
    """Return the sum of x^2, with a hook on x^2 that makes 3 x of 2 x."""
    y = x.square()
    if y.requires_grad:
        y.register_hook(lambda grad: grad * 1.5)  # type: ignore[no-untyped-call]
    return y.sum()


def with_module_hook() -> Callable[[Tensor], Tensor]:
    """Return a function that calls a module with a full backward hook that makes 3 x of 2 x."""
    layer = Square()
    layer.register_full_backward_hook(lambda module, grads, _: (1.5 * grads[0],))  # type: ignore[index]
    return lambda x: layer(x).sum()


WAYS: dict[str, Callable[[], Callable[[Tensor], Tensor]]] = {
    "a module's `backward`": lambda: FakeLoss().of,
    "a module's `.loss`": lambda: Loss().of,
    "`Function`": lambda: lambda x: WrongSquare.apply(x).sum(),
    "tensor hook": lambda: with_tensor_hook,
    "full backward hook": with_module_hook,
    "`custom_op`": lambda: lambda x: square(x).sum(),
}


def backward(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return x.grad after f(x).backward()."""
    x = x.clone().requires_grad_()
    f(x).backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    return x.grad


def twice(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return x times the second derivative."""
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    return x.detach() * torch.autograd.grad(first.sum(), x)[0]


def with_saved_hooks(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return x.grad when every saved tensor passes through two hooks that do not change it."""
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        return backward(f, x)


def leaf(x: Tensor) -> Tensor:
    """Return a copy of x that requires grad."""
    return x.clone().requires_grad_()


compiled: Callable[..., Any] = partial(torch.compile, backend="aot_eager")
ASKED: dict[str, Ask] = {
    "`backward()`": backward,
    "`autograd.grad`": lambda f, x: torch.autograd.grad(f(y := leaf(x)), y)[0],
    "the second derivative": twice,
    "`func.grad`": lambda f, x: torch.func.grad(f)(x),
    "`func.vjp`": lambda f, x: torch.func.vjp(f, x)[1](torch.ones(()))[0],
    "`func.vmap` of `grad`": lambda f, x: torch.func.vmap(torch.func.grad(f))(x[None])[0],
    "`func.jacfwd`": lambda f, x: torch.func.jacfwd(f)(x),
    "`checkpoint`": lambda f, x: backward(lambda y: checkpoint(f, y, use_reentrant=False), x),
    "saved-tensor hooks": with_saved_hooks,
    "`compile`, then `backward()`": lambda f, x: backward(compiled(f), x),
    "`compile` of `func.grad`": lambda f, x: compiled(torch.func.grad(f))(x),
}


def cell(way: str, asked: str) -> str:
    """Return "ours" if the derivative is 3 x, "forward's" if 2 x, "0" (wrong), or the error."""
    x = torch.tensor([1.0, 2.0])
    torch.compiler.reset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            factors = (ASKED[asked](WAYS[way](), x) / x).tolist()
    except Exception as error:
        error = getattr(error, "inner_exception", error)  # torch.compile wraps errors
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return VERDICTS.get(factors[0], str(factors))


def table() -> str:
    """Return a Markdown table: rows of ASKED, columns of WAYS; below it, the texts of errors."""
    errors: dict[str, int] = {}
    lines = [f"| | {' | '.join(WAYS)} |", "|---|" + "---|" * len(WAYS)]
    for asked in ASKED:
        row = []
        for found in (cell(way, asked) for way in WAYS):
            if found not in VERDICTS.values():
                found = f"error {errors.setdefault(found, len(errors) + 1)}"
            row.append(found)
        lines.append(f"| {asked} | {' | '.join(row)} |")
    return "\n".join([*lines, "", *(f"{number}. `{text}`" for text, number in errors.items())])


if __name__ == "__main__":
    print(f"torch {torch.__version__}\n\n{table()}")
