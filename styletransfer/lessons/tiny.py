"""One tiny model, trained with built-in operations or with the hand-written Functions."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from styletransfer.lessons.linear import Linear
from styletransfer.lessons.relu import ReLU
from styletransfer.lessons.scale import Scale

INPUTS, HIDDEN, OUTPUTS, BATCH = 4, 8, 2, 32
LEARNING_RATE = 0.1


class BuiltInScale(nn.Module):
    """x * weight with the gradient left to autograd."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return x * weight, shaped like x."""
        return x * self.weight


@dataclass(frozen=True)
class Training:
    """The loss before each step, and the parameters after the last."""

    losses: list[float]
    parameters: dict[str, Tensor]


def tiny_model(handwritten: bool) -> nn.Sequential:
    """Build linear, scale, relu, linear in float64; both kinds draw the same initial weights."""
    layers: list[nn.Module]
    if handwritten:
        layers = [Linear(INPUTS, HIDDEN), Scale(HIDDEN), ReLU(), Linear(HIDDEN, OUTPUTS)]
    else:
        layers = [
            nn.Linear(INPUTS, HIDDEN),
            BuiltInScale(HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, OUTPUTS),
        ]
    return nn.Sequential(*layers).double()


def train_tiny(handwritten: bool, seed: int = 0, steps: int = 50) -> Training:
    """Fit a fixed random target by gradient descent on the mean squared error.

    The caller's random state is left as it was.

    Raises:
        ValueError: steps is less than 1.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = tiny_model(handwritten)
        x = torch.randn(BATCH, INPUTS, dtype=torch.float64)
    target = torch.stack([x.sin().sum(1), x.prod(1)], dim=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    parameters = {name: p.detach().clone() for name, p in model.named_parameters()}
    return Training(torch.stack(losses).tolist(), parameters)


def largest_difference(one: Training, other: Training) -> float:
    """Return the largest absolute difference between two trainings' losses and parameters."""
    losses = [abs(a - b) for a, b in zip(one.losses, other.losses, strict=True)]
    parameters = [
        float((parameter - other.parameters[name]).abs().max())
        for name, parameter in one.parameters.items()
    ]
    return max(losses + parameters)
