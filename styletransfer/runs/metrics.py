"""What a run leaves to be read: its losses step by step, and what Hydra has recorded."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.runs.folder import METRICS

# Hydra's record of what it was asked for, and how it understood that.
HYDRA, OVERRIDES = ".hydra/hydra.yaml", ".hydra/overrides.yaml"


@dataclass(frozen=True)
class Step:
    """One line of a run's metrics.

    Attributes:
        step: its number, from 1.
        scale: of the picture, from 1.
        losses: name -> weighted loss, with "total"; without what was not finite.
    """

    step: int
    scale: int
    losses: Mapping[str, float]


def read_steps(folder: Path) -> Iterator[Step]:
    """Yield the steps that can be read; a killed run leaves half a line."""
    try:
        lines = (folder / METRICS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            values = json.loads(line)
            step, scale = int(values.pop("step")), int(values.pop("scale"))
            del values["width"], values["height"]
            losses = {
                str(name): float(value)
                for name, value in values.items()
                if isinstance(value, int | float) and math.isfinite(value)
            }
            yield Step(step, scale, losses)


def recorded(folder: Path, name: str, *keys: str) -> Any:
    """Return what a file of Hydra's holds, or what is under keys; None if it cannot be had."""
    try:
        found: Any = OmegaConf.to_container(OmegaConf.load(folder / name))
        for key in keys:
            found = found[key]
    except Exception:  # a damaged file raises nearly anything
        return None
    return found


def typed(folder: Path) -> tuple[str, ...] | None:
    """Return the KEY=VALUE of a run's command line; None if Hydra has kept no record."""
    found = recorded(folder, OVERRIDES)
    return tuple(map(str, found)) if isinstance(found, list) else None
