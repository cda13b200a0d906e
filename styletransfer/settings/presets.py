"""Reads YAML files that a stranger may have written: presets in --config-dir, records of runs."""

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf

from styletransfer.errors import UserError

# Largest file in bytes, and the largest number of values in it. An alias (*name) counts as all
# values that it stands for, because OmegaConf copies them: nested aliases in 300 bytes can stand
# for a billion values.
LARGEST, MOST = 2**20, 20_000


def load_yaml(path: Path) -> Any:
    """Return the config in a YAML file (UserError if it is too large; PyYAML's errors if wrong)."""
    check_yaml(path)
    return OmegaConf.load(path)


def check_yaml(path: Path) -> None:
    """Raise UserError if a YAML file is larger than LARGEST, or holds more than MOST values."""
    is_small = path.stat().st_size <= LARGEST
    try:
        with path.open(encoding="utf-8") as file:
            is_small = is_small and _values(yaml.compose(file, yaml.SafeLoader)) <= MOST
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text in UTF-8; save it as UTF-8 ({error})") from error
    except RecursionError:
        is_small = False
    if not is_small:
        raise UserError(
            f"{path} is too large or too deep; it may hold {MOST} values, and each alias (*name) "
            "counts as all values that it stands for"
        )


def _values(root: yaml.Node | None) -> int:
    """Return the number of values in a YAML document; above MOST, the count ends early."""
    left, count = [root], 0
    while left and count <= MOST:
        node = left.pop()
        count += 1
        if isinstance(node, yaml.MappingNode):
            left += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value
    return count


class PresetSource(FileConfigSource):
    """A PresetSource is a folder of presets whose files `check_yaml` has accepted."""

    @staticmethod
    def scheme() -> str:
        """Return the word before :// in Hydra's search path."""
        return "presets"

    def load_config(self, config_path: str) -> ConfigResult:
        """Return a preset (UserError if `check_yaml` refuses it)."""
        full_path = Path(self.path, self._normalize_file_name(config_path))
        if full_path.is_file():
            check_yaml(full_path)
        return super().load_config(config_path)
