"""Warns of keys that a user has typed although they have no effect with the other settings.

The metadata `idle` in a key's declaration says when: "without CONDITION" or "with CONDITION". A
condition is KEY=VALUE, or KEY for any value but empty, 0 or false, or several of these with "or"
between them. If only a command can know that a key has no effect, it calls `warn_if_typed`.
"""

import logging
from functools import reduce
from typing import Any

from hydra.core.hydra_config import HydraConfig

from styletransfer.settings.schemas import keys

logger = logging.getLogger(__name__)


def typed() -> dict[str, str]:
    """Return key or preset group -> its word on the command line; {} outside of Hydra."""
    words = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    return {word.lstrip("+~").partition("=")[0].partition("@")[0]: word for word in words}


def warn_of_idle_keys(settings: Any) -> None:
    """Log a warning for each typed key that has no effect in these settings of a command."""
    for key, field in keys(type(settings)):
        if (reason := field.metadata.get("idle")) and is_idle(settings, reason):
            warn_if_typed(reason, key)


def warn_if_typed(reason: str, *names: str) -> None:
    """Log a warning for each typed key in `names`, or in a group there, that has no effect."""
    for key, word in typed().items():
        if key in names or key.partition(".")[0] in names:
            logger.warning("%s has no effect %s", word, reason)


def is_idle(settings: Any, reason: str) -> bool:
    """Return whether the text `reason`, a key's metadata `idle`, is true of these settings."""
    word, _, conditions = reason.partition(" ")
    is_met = any(_is_met(settings, condition) for condition in conditions.split(" or "))
    return is_met is (word == "with")


def _is_met(settings: Any, condition: str) -> bool:
    key, _, wanted = condition.partition("=")
    value = reduce(lambda part, name: getattr(part, name, None), key.split("."), settings)
    value = getattr(value, "name", value)  # the preset of a group, such as optimizer=adam
    return str(value).lower() == wanted if wanted else bool(value)
