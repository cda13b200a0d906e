"""Composes a command's config with Hydra, and turns it into an instance of its dataclass."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.errors import UserError
from styletransfer.settings.presets import PresetSource
from styletransfer.settings.registry import CONFIGS, Command, commands
from styletransfer.settings.resolvers import register_resolvers
from styletransfer.settings.schemas import check_values, keys_marked, on_disk, refusal
from styletransfer.settings.values import for_hydra, quoted

# Lock for Hydra, whose state is global to the process: one thread at a time may compose.
_ONE_AT_A_TIME = threading.Lock()
# Hydra's settings for folders of runs. A command runs in the current folder, unless its file
# configs/NAME.yaml names another one. A sweep makes a new folder, with a numbered folder per job.
FOLDERS = {
    "run": {"dir": "."},
    "sweep": {
        "dir": "${new_folder:outputs/sweep/${now:%Y-%m-%d}/${now:%H-%M-%S}}",
        "subdir": "${hydra.job.num}",
    },
}


def compose(
    command: Command,
    overrides: Sequence[str] = (),
    *,
    config_dir: str | None = None,
    with_hydra: bool = False,
) -> DictConfig:
    """Return a command's config with `overrides`, words KEY=VALUE as a user types them.

    If the caller has set up Hydra, that state is restored. `with_hydra` keeps Hydra's settings,
    under the key `hydra`; `config_dir` is a folder of further presets, as in `--config-dir`.
    (UserError if a key is unknown, a value has the wrong type, or a file cannot be read.)
    """
    with _own_hydra():
        try:
            with initialized(command):
                words = words_of(command, overrides, config_dir)
                return hydra.compose(command.name, words, return_hydra_config=with_hydra)
        except UserError:
            raise
        except Exception as error:  # broken files in config_dir may raise errors of any kind
            raise refusal(error) from error


def words_of(
    command: Command, overrides: Sequence[str], config_dir: str | None, *, sweep: bool = False
) -> list[str]:
    """Return the words, in Hydra's grammar, with which Hydra composes a command's config.

    They are `overrides`, the folders of presets, and experiment=paired if `overrides` set
    style_source or another `paired` key, but no experiment. (UserError if there is no folder
    `config_dir`.)
    """
    values = dict(word.partition("=")[::2] for word in overrides)
    given = any(values.get(key, "null") != "null" for key in keys_marked(command.schema, "paired"))
    preset = ["experiment=paired"] if given and "experiment" not in values else []
    words = (for_hydra(word, command.schema, sweep=sweep) for word in overrides)
    return [*_search_path(command, config_dir), *preset, *words]


def settings_of(config: DictConfig) -> Any:
    """Return a composed config as an instance of its schema, with `~` in paths expanded.

    (UserError if a value is missing, is not allowed, or refers to a key that does not exist.)
    """
    try:
        settings = OmegaConf.to_object(config)
    except OmegaConfBaseException as error:
        raise refusal(error) from error
    check_values(settings)
    return settings


@contextmanager
def initialized(command: Command) -> Iterator[Any]:
    """Set up Hydra for a command whose config is NAME.yaml in its folder, and yield Hydra.

    This file extends the config NAME_schema, which holds the keys with their defaults and FOLDERS.
    A command without such a file uses NAME_schema alone and writes no log file.
    """
    ConfigStore.instance().repo.update(_schemas(command))
    Plugins.instance().register(PresetSource)
    folder = str(command.folder)
    with hydra.initialize_config_dir(folder, job_name=command.name, version_base="1.3"):
        yield GlobalHydra.instance().hydra


@cache
def _schemas(command: Command) -> dict[str, Any]:
    """Return the entries of all commands for Hydra's ConfigStore.

    The cache saves time: making them takes longer than the rest of `compose`. The cached entries
    stay as they are, because Hydra copies an entry before it changes it.
    """
    store, before = ConfigStore.instance(), dict(ConfigStore.instance().repo)
    for known in (*commands().values(), command):  # a config may extend that of another command
        name = known.name
        store.store(f"{name}_keys", known.schema)
        store.store(f"{name}_schema", {"defaults": [f"{name}_keys", "_self_"], "hydra": FOLDERS})
        if not known.file.exists():
            silent = {"override hydra/job_logging": "stdout"}
            store.store(name, {"defaults": [f"{name}_schema", "_self_", silent]})
    return {name: entry for name, entry in store.repo.items() if before.get(name) is not entry}


def _search_path(command: Command, config_dir: str | None) -> list[str]:
    """Return [hydra.searchpath=FOLDERS], or [] without folders (UserError if one is missing)."""
    folders = [] if command.folder == CONFIGS else [str(CONFIGS)]
    if config_dir is not None:
        config_dir = on_disk(config_dir)
        if not os.path.isdir(config_dir):
            raise UserError(f"--config-dir {config_dir}: there is no such folder")
        if "${" in config_dir:
            raise UserError(f"--config-dir {config_dir}: Hydra cannot read a folder with ${{")
        folders.append(os.path.abspath(config_dir))
    listed = ",".join(quoted(f"{PresetSource.scheme()}://{folder}") for folder in folders)
    return [f"hydra.searchpath=[{listed}]"] if folders else []


@contextmanager
def _own_hydra() -> Iterator[None]:
    """Reserve Hydra's global state for the `with` block, then restore the caller's state."""
    with _ONE_AT_A_TIME:
        before, base = GlobalHydra.instance().hydra, VersionBase.instance().getbase()
        repo = dict(ConfigStore.instance().repo)
        GlobalHydra.instance().hydra = None
        try:
            yield
        finally:
            GlobalHydra.instance().hydra, ConfigStore.instance().repo = before, repo
            VersionBase.instance().version_base = base


register_resolvers()  # on import: a process of a sweep imports this module before Hydra composes
