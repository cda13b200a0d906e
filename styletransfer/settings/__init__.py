"""From the files under `configs/`, and keys that a person chose, to typed settings."""

from styletransfer.settings.compose import compose, settings_of
from styletransfer.settings.schemas import SCHEMAS

__all__ = ["SCHEMAS", "compose", "settings_of"]
