"""The commands of the lessons."""

from pathlib import Path

from styletransfer.lessons.settings import CompareConfig, GradcheckConfig
from styletransfer.settings import StyleTransferConfig
from styletransfer.settings.registry import command


@command
def compare(config: CompareConfig, folder: Path) -> None:
    """Run one job once under every loss mode: every way to attach losses to a network."""
    from styletransfer.lessons.compare import main

    main(config, folder)


@command
def explain(config: StyleTransferConfig, folder: Path) -> None:
    """Explain where the gradient goes."""
    from styletransfer.lessons.explain.command import main

    main(config, folder)


@command
def gradcheck(config: GradcheckConfig, folder: Path) -> int:
    """Examine a backward, target=FILE.py:NAME: is it right, and who calls it?"""
    from styletransfer.lessons.doctor.command import main

    return main(config)
