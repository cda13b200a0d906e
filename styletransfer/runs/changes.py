"""Changes settings during a run."""

from collections.abc import Iterable, Mapping
from typing import Any

from styletransfer.errors import UserError
from styletransfer.settings import StyleTransferConfig, TrainConfig
from styletransfer.settings.schemas import keys
from styletransfer.settings.values import Config, with_values

# Keys that cannot change during a run; neither can those that TrainConfig adds to its base class.
FIXED = ("content", "init", "seed", "device", "precision", "output")


def changed(config: Config, values: Mapping[str, Any]) -> Config:
    """Return `config` with new values (UserError: a bad value, or a key that cannot change)."""
    check_can_change(values)
    return with_values(config, values)


def check_can_change(asked: Iterable[str]) -> None:
    """Check that all `asked` keys may change during a run (UserError: one may not)."""
    of_a_picture = dict(keys(StyleTransferConfig))
    only_once = {key for key, _ in keys(TrainConfig) if key not in of_a_picture}
    for key in asked:
        if key in only_once.union(FIXED):
            raise UserError(f"{key} cannot change during a run; start another one")
