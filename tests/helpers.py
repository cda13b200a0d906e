"""What several test files share."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from styletransfer.config import ObjectiveConfig, OptimizerConfig, StyleTransferConfig
from styletransfer.features import FeatureExtractor, vgg
from styletransfer.features.vgg import randomize
from styletransfer.modes import LOSS_MODES, get_loss_mode
from styletransfer.networks import Architecture, StyleNetwork
from styletransfer.networks.johnson import ConditionalInstanceNorm
from styletransfer.objective.criterion import Criterion, Losses
from styletransfer.objective.inputs import pair
from styletransfer.objective.resilient import ElasticObjective
from styletransfer.objective.whole import Objective
from styletransfer.optimize import run
from styletransfer.settings.compose import compose, settings_of

ROOT = Path(__file__).resolve().parents[1]
MODES = list(LOSS_MODES)


def tiny_network(
    widths: vgg.Widths = ((4, 4), (6, 6)), seed: int = 0, **options: Any
) -> FeatureExtractor:
    """Return a VGG-shaped network in float64, whose random numbers are the same on every CPU."""
    network = vgg.build(widths, **options).double()
    vgg.randomize(network, seed)
    return network


def picture(seed: int = 0, height: int = 16, width: int = 20) -> Tensor:
    """Return seeded noise (1, 3, height, width) in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(1, 3, height, width, generator=generator, dtype=torch.float64)


def composed(command: str, *overrides: str) -> Any:
    """Return the typed settings of a command, as it has them after KEY=VALUE arguments."""
    return settings_of(compose(command, overrides), command)


def run_script(name: str, *overrides: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run scripts/NAME.py in a process of its own, in the folder `cwd`."""
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / f"{name}.py"), *overrides],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def relative_error(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).norm() / expected.norm())


def layers(**settings: Any) -> ObjectiveConfig:
    """Return an objective on the layers that a tiny network has."""
    defaults: dict[str, Any] = {
        "content_layers": ["relu2_1"],
        "style_layers": ["relu1_1", "relu2_1"],
        "content_weight": 0.5,
        "style_weight": 2.0,
    }
    return ObjectiveConfig(**(defaults | settings))


def make_objective(
    mode: str, network: FeatureExtractor, content: Tensor, style: Tensor, **settings: Any
) -> Objective:
    criterion = Criterion.of(layers(**settings))
    return Objective(network, get_loss_mode(mode), criterion, pair(content, style))


def gradient(objective: Objective, image: Tensor) -> Tensor:
    """Return d(total)/d(image) at a copy of `image`."""
    leaf = image.clone().requires_grad_()
    objective.evaluate(leaf)
    assert leaf.grad is not None
    return leaf.grad


def run_settings(
    optimizer: str | OptimizerConfig = "lbfgs", **settings: Any
) -> StyleTransferConfig:
    """Return the settings of a short run with tiny pictures, at one scale."""
    if isinstance(optimizer, str):
        optimizer = OptimizerConfig(optimizer, 1.0 if optimizer == "lbfgs" else 0.02)
    defaults: dict[str, Any] = {"size": 20, "steps": 5, "scales": 1, "objective": layers()}
    return StyleTransferConfig(optimizer=optimizer, **(defaults | settings))


def elastic(objective: Any, tile: int | None = None) -> ElasticObjective:
    """Return an objective as a run has it, whatever tile memory leaves."""
    return ElasticObjective(lambda tile: objective, tile, longest=100, smallest=0)


def with_bowl(monkeypatch: pytest.MonkeyPatch, bowl: Any) -> Any:
    """Let runs minimise `bowl`."""
    monkeypatch.setattr(run, "make_objective", lambda *args: elastic(bowl, args[-3]))
    return bowl


@dataclass
class Bowl:
    """An objective whose lowest point is known: mean((image - target)^2), NaN when told so.

    Attributes:
        target: where the loss is 0.
        broken: numbers of the evaluations, from 1, that give NaN for the loss and its gradient.
        raises: number of the evaluation that is interrupted by Ctrl-C, or 0.
        points: every picture that was evaluated.
    """

    target: Tensor
    broken: Any = ()
    raises: int = 0
    points: list[Tensor] = field(default_factory=list)

    def evaluate(self, image: Tensor) -> Losses:
        self.points.append(image.detach().clone())
        if len(self.points) == self.raises:
            raise KeyboardInterrupt
        loss = (image - self.target).square().mean()
        if len(self.points) in self.broken:
            loss = loss * float("nan")
        loss.backward()
        return Losses({"bowl": loss.detach()})


def style_network(layout: Architecture, styles: int) -> StyleNetwork:
    """Return a seeded style network whose styles differ."""
    network = StyleNetwork(layout, styles).requires_grad_(False)
    randomize(network, seed=1)
    generator = torch.Generator().manual_seed(2)
    for module in network.modules():
        if isinstance(module, ConditionalInstanceNorm):
            module.scale.add_(torch.rand(module.scale.shape, generator=generator) - 0.5)
            module.shift.add_(torch.rand(module.shift.shape, generator=generator) - 0.5)
    return network


def benchmark_script(name: str) -> ModuleType:
    """Return a script of benchmarks/ as a module."""
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
