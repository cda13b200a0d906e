"""Composes a command's config with Hydra, and turns it into an instance of its dataclass."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.errors import UserError
from styletransfer.settings import ASSETS
from styletransfer.settings.registry import COMMANDS, CONFIGS, command, schema_of
from styletransfer.settings.schemas import check, refusal
from styletransfer.settings.values import quoted

# Lock for Hydra, whose state is global to the process: one thread at a time may compose.
_ONE_AT_A_TIME = threading.Lock()


def compose(
    name: str,
    overrides: Sequence[str] = (),
    *,
    config_dir: str | None = None,
    with_hydra: bool = False,
) -> DictConfig:
    """Return the config that the command `name` has with the KEY=VALUE words `overrides`.

    If the caller has set up Hydra, that state is restored. `with_hydra` keeps Hydra's settings,
    under the key `hydra`; `config_dir` is a folder of further presets, as in `--config-dir`.
    (UserError: an unknown key, a value of the wrong type, or a file that cannot be read.)
    """
    with _own_hydra():
        try:
            with initialized(name):
                words = [*search_path(name, config_dir), *overrides]
                return hydra.compose(name, words, return_hydra_config=with_hydra)
        except UserError:
            raise
        except Exception as error:  # Broken files under config_dir raise nearly anything.
            raise refusal(error, name) from error


def settings_of(config: DictConfig, name: str) -> Any:
    """Return a command's composed config as an instance of its schema, with `~` in paths expanded.

    (UserError: a value is missing, is not allowed, or refers to a key that does not exist.)
    """
    try:
        settings = OmegaConf.to_object(config)
    except OmegaConfBaseException as error:
        raise refusal(error, name) from error
    check(settings)
    return settings


@contextmanager
def initialized(name: str, claimed: list[Path] | None = None) -> Iterator[Any]:
    """Set up and yield Hydra for NAME.yaml; `claimed` receives the folders that the run makes."""
    # A config file may extend another file of the same schema.
    same = [other for other, known in COMMANDS.items() if known.schema == command(name).schema]
    for known in {name, *same}:
        ConfigStore.instance().store(f"{known}_schema", schema_of(known))
    register_resolvers(claimed)
    folder = str(command(name).folder)
    with hydra.initialize_config_dir(folder, job_name=name, version_base="1.3"):
        yield GlobalHydra.instance().hydra


def search_path(name: str, config_dir: str | None) -> list[str]:
    """Return [hydra.searchpath=...], so that Hydra finds presets (UserError: no such folder)."""
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
    """Register the functions (OmegaConf's resolvers) that config files call as ${NAME:ARGUMENTS}.

    ${either:CONDITION,A,B}: A if the condition is true, otherwise B.
    ${asset:NAME}: the path of a picture that comes with the package.
    ${new_folder:PATH,INSTEAD}: INSTEAD if it is not empty; otherwise the first of PATH, PATH-2,
    PATH-3, ... that does not exist. Two runs that start in the same second get different folders.
    ${kept_folder:PATH}: PATH, which may exist: the command continues what is in it.
    ${resumed:${resume}}: the folder of the run to resume, or ""; ${names:PATHS}: names without
    folder and extension, joined by "+". ${file_name:PATH}: PATH without
    its folder. ${nowhere:}: the null device.

    `claimed` receives the folders that the run makes. If `claimed` is None, the config is only
    shown, and no folder is made.
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
    # The results are cached, so that all jobs of a sweep use the same folder.
    register("new_folder", new, use_cache=True)
    register("kept_folder", kept, use_cache=True)
    register("resumed", resumed)
    register("nowhere", lambda: os.devnull)
    register("names", names)
    register("file_name", file_name)


def names(paths: Any) -> str:
    """Return the names of one or several files, without folder and extension, joined by "+"."""
    listed = [paths] if isinstance(paths, str) else paths or []
    return "+".join(Path(file_name(path)).stem for path in listed) or "none"


def file_name(path: str) -> str:
    """Return a path's last part; Hydra cannot have ${ in the name of a run's folder."""
    return Path(str(path)).name.replace("${", "{")


def resumed(resume: str | None) -> str:
    """Return the folder that the setting `resume` names, or "." if that folder holds no run.

    The result is "" for None and "auto": the run then uses its own folder.
    """
    if resume in (None, "auto"):
        return ""
    folder = os.path.expanduser(str(resume))
    return folder if os.path.isfile(os.path.join(folder, "run.json")) else "."


def absent(path: Path) -> list[Path]:
    """Return those of `path` and its parent folders that do not exist, absolute, `path` first."""
    full = path.absolute()  # a job may change the working directory
    return [folder for folder in (full, *full.parents) if not folder.exists()]


def new_folder(path: str) -> str:
    """Make a new folder, `path`, or if that exists `path-2` and so on; return it (or OSError)."""
    claimed, number = path, 1
    while True:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            # If several processes make the same folder, only one of them succeeds.
            Path(claimed).mkdir()
            return claimed
        except FileNotFoundError:  # another run has failed and removed the empty parent folders
            continue
        except FileExistsError:
            number += 1
            claimed = f"{path}-{number}"


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


register_resolvers()  # a parallel job's process imports this module before Hydra composes
