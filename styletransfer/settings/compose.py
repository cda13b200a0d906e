"""Composing a config, and turning one into typed settings."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.errors import UserError
from styletransfer.settings import ASSETS
from styletransfer.settings.commands import CONFIGS, SCHEMAS, command, schema_of
from styletransfer.settings.paths import absent, names, new_folder, resumed
from styletransfer.settings.schemas import check, refusal
from styletransfer.settings.values import quoted

# Hydra's state is the process's, not a thread's.
_ONE_AT_A_TIME = threading.Lock()
# Configs that depend on nothing but their overrides, by those; so many are remembered.
_COMPOSED: dict[tuple[str, ...], DictConfig] = {}
_MOST = 64


def compose(
    name: str,
    overrides: Sequence[str] = (),
    *,
    config_dir: str | None = None,
    with_hydra: bool = False,
) -> DictConfig:
    """Return the config of NAME.yaml with overrides, as a command would have it.

    A caller's own Hydra is left as it was. `with_hydra` keeps Hydra's settings, under `hydra`;
    `config_dir` is a folder with more files, as `--config-dir` names it. (UserError: an unknown
    key, a value of the wrong type, or a file that cannot be read.)
    """
    of_hydra = any(word.lstrip("+~").startswith("hydra") for word in overrides)
    pure = not (config_dir or with_hydra or of_hydra)
    words = (name, *overrides)
    with _own_hydra():
        if pure and words in _COMPOSED:
            return deepcopy(_COMPOSED[words])
        try:
            with initialized(name):
                overrides = [*search_path(name, config_dir), *overrides]
                config = hydra.compose(name, overrides, return_hydra_config=with_hydra)
        except UserError:
            raise
        except Exception as error:  # broken files under config_dir raise nearly anything
            raise refusal(error, name) from error
        if pure and len(_COMPOSED) < _MOST:
            _COMPOSED[words] = deepcopy(config)
    return config


def settings_of(config: DictConfig, name: str) -> Any:
    """Return a command's composed config as an instance of its schema, `~` in names expanded.

    (UserError: a value that is missing, refers to nothing or is too large.)
    """
    try:
        settings = OmegaConf.to_object(config)
    except OmegaConfBaseException as error:
        raise refusal(error, name) from error
    check(settings)
    return settings


@contextmanager
def initialized(name: str, claimed: list[Path] | None = None) -> Iterator[Any]:
    """Set up the process's Hydra for NAME.yaml, and yield it; see `register_resolvers`."""
    # A file may build on another of its schema.
    same = [other for other, schema in SCHEMAS.items() if schema is schema_of(name)]
    for known in {name, *same}:
        ConfigStore.instance().repo[f"{known}_schema.yaml"] = _schema_node(known)
    register_resolvers(claimed)
    folder = str(command(name).folder)
    with hydra.initialize_config_dir(folder, job_name=name, version_base="1.3"):
        yield GlobalHydra.instance().hydra


def search_path(name: str, config_dir: str | None) -> list[str]:
    """Return the override by which Hydra finds presets elsewhere (UserError: it is no folder)."""
    folders = [] if command(name).folder == CONFIGS else [str(CONFIGS)]
    if config_dir is not None:
        if not os.path.isdir(config_dir):
            raise UserError(f"--config-dir {config_dir}: there is no such folder")
        if "${" in config_dir:
            raise UserError(f"--config-dir {config_dir}: Hydra cannot read a folder with ${{")
        folders.append(os.path.abspath(config_dir))
    listed = ",".join(quoted(f"file://{folder}") for folder in folders)
    return [f"hydra.searchpath=[{listed}]"] if folders else []


def register_resolvers(claimed: list[Path] | None = None) -> None:
    """Register what config files may say in ${...}.

    ${either:CONDITION,A,B}: A where the condition is true, else B.
    ${asset:NAME}: the path of a picture that comes with the package.
    ${new_folder:PATH,INSTEAD}: PATH, or PATH-2, PATH-3, ..., the first that did not exist: two runs
    that start in one second do not share a folder. INSTEAD where that is not empty.
    ${kept_folder:PATH}: PATH, at every start the same.
    ${resumed:${resume}}, ${names:PATHS}: see `resumed`, in whose "." nothing is to be written, and
    `names`.

    `claimed` receives the run's folder and the parents of it that did not exist before; it is None
    where a config is only looked at, and no folder is made.
    """

    def new(path: str, instead: str = "") -> str:
        if instead or claimed is None:
            return instead or path
        parents = absent(Path(path).parent)
        made = new_folder(path)
        claimed.extend([Path(made).absolute(), *parents])
        return made

    def kept(path: str) -> str:
        if claimed is not None:
            claimed.extend(absent(Path(path)))
        return path

    register = partial(OmegaConf.register_new_resolver, replace=True)
    register("either", lambda when, a, b: a if when else b)
    register("asset", lambda name: str(ASSETS / name))
    # Cached: one folder for one config, and for all jobs of a sweep.
    register("new_folder", new, use_cache=True)
    register("kept_folder", kept, use_cache=True)
    register("resumed", resumed)
    register("nowhere", lambda: os.devnull)
    register("names", names)


register_resolvers()  # A launcher's process imports this module before Hydra composes its job.


@cache
def _schema_node(name: str) -> ConfigNode:
    """Return what Hydra's store has of a schema; it takes a moment to convert one."""
    node = OmegaConf.structured(schema_of(name))
    return ConfigNode(name=f"{name}_schema", node=node, group=None, package=None, provider=None)


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
