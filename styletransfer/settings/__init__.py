"""From the files under `configs/`, and keys that a person chose, to typed settings."""

from styletransfer.config.commands import SCHEMAS
from styletransfer.settings.compose import compose, settings_of

__all__ = ["SCHEMAS", "compose", "settings_of"]
