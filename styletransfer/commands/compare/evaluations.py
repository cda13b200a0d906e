"""What a single evaluation does under each loss mode: its gradient, its calls of backward."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from styletransfer.job.job import Job
from styletransfer.modes import LOSS_MODES, LossMode
from styletransfer.objective.terms import gradient_at
from styletransfer.objective.whole import Objective
from styletransfer.system.measure import counted


def objective_at(job: Job, mode: LossMode, side: int) -> Objective:
    """Return the objective that a run minimises at the scale whose longer side is `side`."""
    return Objective(job.extractor, mode, job.criterion, job.pictures_at(side))


def gradient_errors(job: Job, reference: str, points: Sequence[Tensor]) -> dict[str, float]:
    """Return mode -> the largest relative error of its gradient at any of `points`.

    That is |g - r| / |r| in the Euclidean norm, r being the reference mode's gradient; |g| where r
    is zero.

    Args:
        job: in float64, where rounding leaves about 1e-15.
        reference: name of a loss mode.
        points: pictures (1, 3, h, w), each of the size of one of the job's scales.
    """
    by_side: dict[int, list[Tensor]] = {}
    for point in points:
        by_side.setdefault(max(point.shape[2:]), []).append(job.on_device(point))
    errors: dict[str, list[float]] = {name: [] for name in LOSS_MODES}
    for side, pictures in by_side.items():
        objectives = {name: objective_at(job, mode, side) for name, mode in LOSS_MODES.items()}
        for picture in pictures:
            gradients = {name: gradient_at(each, picture) for name, each in objectives.items()}
            for name, error in relative_errors(gradients, reference).items():
                errors[name].append(error)
    # torch's maximum, unlike Python's, never passes over a NaN.
    return {
        name: torch.tensor(found, dtype=torch.float64).max().item()
        for name, found in errors.items()
    }


def relative_errors(gradients: Mapping[str, Tensor], reference: str) -> dict[str, float]:
    """Return name -> |g - r| / |r|, or |g| where r is zero; r is the gradient of `reference`."""
    expected = gradients[reference]
    norm = expected.norm().item() or 1.0
    return {name: (each - expected).norm().item() / norm for name, each in gradients.items()}


def backward_calls(objective: Objective, image: Tensor) -> int:
    """Return how often one evaluation at `image` calls `backward` on a tensor."""
    # Tensor.backward calls torch.autograd.backward, so both are counted, each once.
    with counted((torch.autograd, "backward")) as calls:
        gradient_at(objective, image)
    return calls.count


def fake_backward_entries(objective: Objective, image: Tensor) -> tuple[int, int]:
    """Return how often the loss modules' own `backward` is entered: by autograd, by the driver.

    Autograd differentiates the sum of the modules' losses, of which everyone's gradient is a part;
    the driver evaluates the objective.

    Args:
        objective: under the mode fake_backward.
        image: (1, 3, H, W), sRGB in [0, 1], of the objective's size.
    """
    places = [(kind, "backward") for kind in {type(term.module) for term in objective.terms}]
    leaf = image.detach().clone().requires_grad_()
    with counted(*places) as by_autograd:
        objective.network(leaf)
        losses = [term.module.loss for term in objective.terms]
        torch.stack(losses).sum().backward()  # type: ignore[arg-type, no-untyped-call]
    with counted(*places) as by_driver:
        gradient_at(objective, image)
    return by_autograd.count, by_driver.count
