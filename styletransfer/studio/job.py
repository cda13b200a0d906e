"""A run as the server knows it: what was asked for, and where it stands."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from styletransfer.studio.asked import command_of

# Of which the page knows one at a time; the last three are ends.
RUNNING = ("starting", "painting", "paused", "stopping")


@dataclass
class Job:
    """A run that is waiting, at work, or has ended.

    Attributes:
        id: the name of its folder.
        folder: where it is kept.
        settings: of the page.
        typed: KEY=VALUE with which it began.
        order: for the painter.
        status: queued, starting, painting, paused, stopping, finished, stopped or failed.
        error: why it failed.
        progress: the last report of where it is; empty before the first.
        moments: to which it can go back.
        changes: what it was steered by, with file names.
        shown_changes: the same with ids of pictures.
        size: width and height of the pastiche in pixels, or None.
        picture: the last preview, a JPEG.
        losses: (step, name -> value) of the steps that led to where it is.
        left: set once the painter has let go of it; a finished run can be steered on until then.
    """

    id: str
    folder: Path
    settings: dict[str, Any]
    typed: Sequence[str]
    order: dict[str, Any]
    status: str = "queued"
    error: str | None = None
    progress: dict[str, Any] = field(default_factory=dict)
    moments: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    shown_changes: list[dict[str, Any]] = field(default_factory=list)
    size: tuple[int, int] | None = None
    picture: bytes | None = None
    losses: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def can_steer(self) -> bool:
        """Whether it may be changed: while it is painted, and after until the painter leaves it."""
        return self.status in ("painting", "paused", "finished") and not self.left.is_set()

    @property
    def shown(self) -> dict[str, Any]:
        """What the page is told."""
        said = ("step", "steps", "scale", "scales", "seconds", "left")
        return {
            "id": self.id,
            "status": self.status,
            "settings": self.settings,
            "command": command_of(self.typed, self.changes),
            **{name: self.progress.get(name) for name in said},
            "width": self.size and self.size[0],
            "height": self.size and self.size[1],
            "moments": self.moments,
            "changes": self.shown_changes,
            "can_steer": self.can_steer,
            "error": self.error,
        }
