"""One evaluation of an objective, watched: its graph, its backward passes, and what they keep."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from styletransfer.commands.explain.facts import Retention, Study
from styletransfer.commands.explain.fold import fold
from styletransfer.commands.explain.watch import Watch
from styletransfer.lessons import graph
from styletransfer.objective.whole import Objective


def study(mode: str, objective: Objective, image: Tensor) -> Study:
    """Evaluate `objective` at `image` and report every backward pass.

    The evaluation is the real one, `Objective.evaluate`, watched from outside: forward hooks tell
    which layer made which node, and a `TorchFunctionMode` sees each call of `Tensor.backward`.

    Args:
        mode: the name of the loss mode.
        objective: in that mode.
        image: (1, 3, H, W), sRGB in [0, 1]; a copy of it becomes the leaf.
    """
    point = image.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    known = [point, *objective.network.parameters(), *objective.network.buffers()]
    lent = frozenset(graph.storages(known))
    watch = Watch(objective, point, lent)
    with watch.owners(), _count_methods(objective) as by_driver, watch:
        objective.evaluate(point)
    retention, by_autograd = _retention(objective, point, lent)
    for term in objective.terms:
        term.module.loss = None  # type: ignore[assignment]
    return Study(
        mode=mode,
        groups=fold(watch),
        passes=tuple(watch.passes),
        retention=retention,
        methods=tuple(sorted(by_driver)),
        entered_by_driver=sum(by_driver.values()),
        entered_by_autograd=by_autograd,
        lent=lent,
    )


def _retention(objective: Objective, point: Tensor, lent: Collection[int]) -> tuple[Retention, int]:
    """Measure what retain_graph=True keeps; also count the fake methods that autograd enters."""

    def forward() -> list[Tensor]:
        objective.network(point)
        return [term.module.loss for term in objective.terms]  # type: ignore[misc]

    losses = forward()
    nodes = graph.walk(*(graph.root(loss) for loss in losses))
    before = graph.held(nodes, lent)
    with _count_methods(objective) as by_autograd:
        torch.autograd.backward(losses, retain_graph=True)
    retained = graph.held(nodes, lent)
    torch.autograd.backward(losses)
    freed = graph.held(nodes, lent)
    second_pass = None
    try:
        for loss in forward():
            loss.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        second_pass = str(error).partition(". ")[0]
    return Retention(before, retained, freed, second_pass), sum(by_autograd.values())


@contextmanager
def _count_methods(objective: Objective) -> Iterator[Counter[str]]:
    """Count the calls of the loss modules' own methods called `backward`, by class."""
    calls: Counter[str] = Counter()
    modules = [term.module for term in objective.terms if hasattr(term.module, "backward")]

    def counting(name: str, method: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def backward(*args: Any, **kwargs: Any) -> Tensor:
            calls[name] += 1
            return method(*args, **kwargs)

        return backward

    for module in modules:
        name = f"{type(module).__name__}.backward"
        calls[name] += 0
        # On the instance, where it hides the class's method for as long as it is there.
        module.backward = counting(name, module.backward)  # type: ignore[arg-type,assignment]
    try:
        yield calls
    finally:
        for module in modules:
            del module.backward
