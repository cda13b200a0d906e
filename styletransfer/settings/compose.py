"""Composing a config outside a command, and turning one into typed settings."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.errors import UserError
from styletransfer.settings.check import check
from styletransfer.settings.messages import explain
from styletransfer.settings.resolvers import register_resolvers
from styletransfer.settings.schemas import (
    folder_of,
    keys,
    register_schema,
    schema_of,
    search_path,
    unknown_key,
)

# Hydra's state is the process's, not a thread's.
_ONE_AT_A_TIME = threading.Lock()


def compose(
    name: str,
    overrides: Sequence[str] = (),
    *,
    config_dir: str | None = None,
    with_hydra: bool = False,
) -> DictConfig:
    """Return the config of `configs/<name>.yaml` with overrides, as a command would have it.

    A caller's own Hydra is left as it was.

    Args:
        name: of a file under configs/, such as "train".
        overrides: KEY=VALUE in Hydra's grammar.
        config_dir: a folder with more files, as `--config-dir` names it.
        with_hydra: keep Hydra's own settings, under `hydra`.

    Raises:
        UserError: an unknown key, a value of the wrong type, or a file that cannot be read.
    """
    searched = search_path(name, config_dir)
    with _own_hydra():
        register_schema(name)
        register_resolvers()
        try:
            with hydra.initialize_config_dir(str(folder_of(name)), version_base="1.3"):
                return hydra.compose(name, [*searched, *overrides], return_hydra_config=with_hydra)
        except Exception as error:  # broken files under config_dir raise nearly anything
            raise UserError(explain(error, name)) from error


def settings_of(config: DictConfig, name: str) -> Any:
    """Return a composed config as an instance of its schema, `~` in file names expanded.

    Args:
        config: of `configs/<name>.yaml`.
        name: of the file.

    Raises:
        UserError: a key that the schema does not know, a value that is missing, refers to nothing
            or is too large.
    """
    for key in _added_keys(config):
        raise UserError(unknown_key(key, (known for known, _ in keys(schema_of(name)))))
    try:
        settings = OmegaConf.to_object(config)
    except OmegaConfBaseException as error:
        raise UserError(explain(error, name)) from error
    check(settings)
    return settings


@contextmanager
def _own_hydra() -> Iterator[None]:
    """Lend the process's one Hydra; what a caller had set up is there again afterwards."""
    with _ONE_AT_A_TIME:
        registered, store = GlobalHydra.instance(), ConfigStore.instance()
        before, repo, base = registered.hydra, dict(store.repo), VersionBase.instance().getbase()
        registered.hydra = None
        try:
            yield
        finally:
            GlobalHydra.instance().hydra = before
            store.repo = repo
            VersionBase.instance().version_base = base


def _added_keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    """Yield the keys that `+key=value` added beside those of the schema; nothing reads them."""
    schema = OmegaConf.get_type(config)
    known = (
        {field.name for field in fields(schema)} if is_dataclass(schema) else {*map(str, config)}
    )
    for key in map(str, config):
        if key not in known:
            yield prefix + key
        elif OmegaConf.is_missing(config, key) or OmegaConf.is_interpolation(config, key):
            continue  # has no value yet
        elif isinstance(node := config[key], DictConfig) and OmegaConf.get_type(node) is not dict:
            yield from _added_keys(node, prefix + key + ".")
