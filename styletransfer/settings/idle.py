"""Warns of keys that a user has typed although they have no effect with the other settings.

The metadata `idle` of a key says when it has none: "without CONDITION" or "with CONDITION". A
condition is KEY=VALUE; or KEY, which holds unless its value is empty, 0 or false; or several of
these with "or" between them. If only the command itself can know, it calls `warn_if_typed`.
"""

import logging
from functools import reduce
from typing import Any

from hydra.core.hydra_config import HydraConfig

from styletransfer.settings.schemas import keys

logger = logging.getLogger(__name__)


def typed() -> dict[str, str]:
    """Map each key or preset group on the command line to its word KEY=VALUE; {} without Hydra."""
    words = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    return {word.lstrip("+~").partition("=")[0].partition("@")[0]: word for word in words}


def warn_of_idle_keys(settings: Any) -> None:
    """Log a warning for each typed key that has no effect in these settings of a command."""
    for key, field in keys(type(settings)):
        if (reason := field.metadata.get("idle")) and is_idle(settings, reason):
            warn_if_typed(reason, key)


def warn_if_typed(reason: str, *names: str) -> None:
    """Warn that each typed key whose name, or whose group's name, is in `names` has no effect."""
    for key, word in typed().items():
        if key in names or key.partition(".")[0] in names:
            logger.warning("%s has no effect %s", word, reason)


def is_idle(settings: Any, reason: str) -> bool:
    """Return whether `reason`, the metadata `idle` of a key, is true for these settings."""
    word, _, conditions = reason.partition(" ")
    is_met = any(_is_met(settings, condition) for condition in conditions.split(" or "))
    return is_met is (word == "with")


def _is_met(settings: Any, condition: str) -> bool:
    key, _, wanted = condition.partition("=")
    value = reduce(lambda part, name: getattr(part, name, None), key.split("."), settings)
    value = getattr(value, "name", value)  # for a group such as optimizer: adam or lbfgs
    return str(value).lower() == wanted if wanted else bool(value)
