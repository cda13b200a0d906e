"""Does torch use a derivative that the user gives, or its own? Six ways to give it, 13 calls.

`python scripts/matrix.py` prints the table. Each way computes the sum of x^2, and the
derivative that it gives is wrong on purpose: 3 x. Where a call returns 3 x, torch used it; where
it is 2 x, torch differentiated the operations of forward. The second derivative is 3 or 2.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import grad, jacfwd, vjp, vmap
from torch.utils.checkpoint import checkpoint

from styletransfer.lessons.errors import described

Scalar = Callable[[Tensor], Tensor]
VERDICTS = {3.0: "ours", 2.0: "forward's", 0.0: "0"}


class Loss(nn.Module):
    """This loss layer keeps its loss in `.loss`, as in the PyTorch 0.4 tutorial."""

    loss: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Keep the loss and return x unchanged."""
        self.loss = x.square().sum()
        return x


class FakeLoss(Loss):
    """This loss layer has a method `backward`, as in the PyTorch 0.3 tutorial."""

    def backward(self, x: Tensor) -> Tensor:
        """Return 3 x; no code calls this method."""
        return 3 * x


def with_loss(layer: Loss) -> Scalar:
    """Return a function that runs the layer and returns the loss that it keeps."""
    return lambda x: (layer(x), layer.loss)[1]


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
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return 3 x times the gradient of the output."""
        return 3 * ctx.saved_tensors[0] * grads[0]


@torch.library.custom_op("styletransfer_lessons::square", mutates_args=())
def square(x: Tensor) -> Tensor:
    """Return x^2 by a custom operator, whose derivative is registered as 3 x."""
    return x.square()


square.register_fake(torch.empty_like)
square.register_autograd(WrongSquare.backward, setup_context=WrongSquare.setup_context)


def with_tensor_hook(x: Tensor) -> Tensor:
    """Return the sum of x^2, with a hook on x^2 that makes the gradient 3 x instead of 2 x."""
    y = x.square()
    if y.requires_grad:
        y.register_hook(lambda grad: grad * 1.5)
    return y.sum()


def with_module_hook() -> Scalar:
    """Return a function that calls a module whose full backward hook makes 2 x to 3 x."""
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda module, grads, _: (1.5 * grads[0],))  # type: ignore[index]
    return lambda x: layer(x.square()).sum()


WAYS: dict[str, Callable[[], Scalar]] = {
    "a module's `backward`": lambda: with_loss(FakeLoss()),
    "a module's `.loss`": lambda: with_loss(Loss()),
    "`Function`": lambda: lambda x: WrongSquare.apply(x).sum(),
    "tensor hook": lambda: with_tensor_hook,
    "full backward hook": with_module_hook,
    "`custom_op`": lambda: lambda x: square(x).sum(),
}


def backward(f: Scalar, x: Tensor) -> Any:
    """Return x.grad after f(x).backward()."""
    x = x.clone().requires_grad_()
    f(x).backward()
    return x.grad


def derivative(f: Scalar, x: Tensor, create_graph: bool = False) -> Tensor:
    """Return the derivative of f at x, a leaf, by `autograd.grad`."""
    return torch.autograd.grad(f(x.requires_grad_()), x, create_graph=create_graph)[0]


def with_saved_hooks(f: Scalar, x: Tensor) -> Any:
    """Return x.grad when every saved tensor passes through two hooks that do not change it."""
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        return backward(f, x)


def compiled(f: Scalar) -> Scalar:
    """Return f, compiled without generated code."""
    return torch.compile(f, backend="aot_eager")


ASKED: dict[str, Callable[[Scalar, Tensor], Any]] = {
    "`backward()`": backward,
    "`autograd.grad`": derivative,
    # The result is multiplied by x, since `cell` divides all results by x.
    "the second derivative": lambda f, x: (
        x.detach() * derivative(lambda y: derivative(f, y, create_graph=True).sum(), x)
    ),
    "`func.grad`": lambda f, x: grad(f)(x),
    "`func.vjp`": lambda f, x: vjp(f, x)[1](torch.ones(()))[0],
    "`func.vmap` of `grad`": lambda f, x: vmap(grad(f))(x[None])[0],
    "`func.jacfwd`": lambda f, x: jacfwd(f)(x),
    "`checkpoint`": lambda f, x: backward(lambda y: checkpoint(f, y, use_reentrant=False), x),
    "saved-tensor hooks": with_saved_hooks,
    "`compile`, then `backward()`": lambda f, x: backward(compiled(f), x),
    "`compile` of `func.grad`": lambda f, x: compiled(grad(f))(x),
    "`compile` of `vmap` of `grad`": lambda f, x: compiled(vmap(grad(f)))(x[None])[0],
    "`compile` of `func.jacfwd`": lambda f, x: compiled(jacfwd(f))(x),
}


def cell(way: str, asked: str) -> str:
    """Return which derivative of the sum of x² the call `asked` gives, or its error's first line.

    "ours": 3 x, the derivative that `way` gives, wrong on purpose. "forward's": 2 x, the derivative
    of the operations of forward. "0": zeros. Any other factor is returned as a number.
    """
    x = torch.tensor([1.0, 2.0])
    torch.compiler.reset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            factors = (ASKED[asked](WAYS[way](), x) / x).tolist()
    except Exception as error:
        return described(error)
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


def main() -> None:
    """Print the version of torch, and the table."""
    print(f"torch {torch.__version__}\n\n{table()}")
