"""What every script does around its one library call."""

import difflib
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ParamSpec

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from styletransfer.config import (
    BenchmarkConfig,
    CompareConfig,
    DistillConfig,
    JudgeConfig,
    TrainConfig,
)
from styletransfer.errors import UserError
from styletransfer.system.devices import set_float32_precision
from styletransfer.system.heap import keep_freed_memory
from styletransfer.system.memory import is_out_of_memory

P = ParamSpec("P")

CONFIGS = Path(__file__).resolve().parent.parent / "configs"

# Name of a file under configs/ -> its schema.
SCHEMAS: dict[str, type[Any]] = {
    "train": TrainConfig,
    "compare": CompareConfig,
    "benchmark": BenchmarkConfig,
    "distill": DistillConfig,
    "judge": JudgeConfig,
    "explain": TrainConfig,
}


def register_schemas() -> None:
    """Make the dataclasses of `styletransfer.config` known to Hydra as `<script>_schema`.

    Config files may also say ${either:CONDITION,A,B}: A where the condition is true, else B; and
    ${resumed:${resume}}: the folder that resume=FOLDER names, "." if no run has been there (then
    nothing is to be written), and nothing where a run begins in a folder of its own.
    """
    OmegaConf.register_new_resolver("either", lambda when, a, b: a if when else b, replace=True)
    OmegaConf.register_new_resolver("resumed", _resumed, replace=True)
    store = ConfigStore.instance()
    for name, schema in SCHEMAS.items():
        store.store(name=f"{name}_schema", node=schema)


def _resumed(resume: str | None) -> str:
    if resume in (None, "auto"):
        return ""
    return str(resume) if (Path(str(resume)) / "run.json").is_file() else "."


def command(name: str) -> Callable[[Any, Path], None]:
    """Return what a command does with its settings and its run folder."""
    module = importlib.import_module(f"styletransfer.commands.{name}.command")
    main: Callable[[Any, Path], None] = module.main
    return main


def script(name: str) -> Callable[[], None]:
    """Make a script's main from the name of its command; see `hydrated`."""
    return hydrated(name, command(name))


def hydrated(config_name: str, function: Callable[[Any, Path], None]) -> Callable[[], None]:
    """Make a main from a function of its settings and its run folder.

    The settings are `configs/<config_name>.yaml`, composed, as an instance of its schema.

    Bad input ends in one line on standard error and exit status 1, Hydra's own errors included.
    HYDRA_FULL_ERROR=1 in the environment brings the tracebacks of config errors back.
    """
    register_schemas()

    @hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=config_name)
    @friendly
    @functools.wraps(function)
    def run(config: DictConfig) -> None:
        for key in _added_keys(config):
            raise UserError(_unknown_key(key, config_name))
        try:
            settings = OmegaConf.to_object(config)
            function(settings, Path(HydraConfig.get().runtime.output_dir))
        except OmegaConfBaseException as error:  # a value that is missing or refers to nothing
            raise UserError(explain(error, config_name)) from error

    @functools.wraps(function)
    def main() -> None:
        keep_freed_memory()
        set_float32_precision()
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            run()
            return
        # Hydra then raises its errors, which it otherwise prints over many lines.
        os.environ["HYDRA_FULL_ERROR"] = "1"
        try:
            run()
        except (HydraException, OmegaConfBaseException) as error:
            fail(explain(error, config_name))
        except OSError as error:
            if error.filename is None:
                raise
            fail(f"cannot write {error.filename}: {error.strerror}; choose hydra.run.dir=PATH")
        except KeyboardInterrupt as error:
            fail("interrupted", status=getattr(error, "status", 130))
        finally:
            del os.environ["HYDRA_FULL_ERROR"]

    return main


def friendly(main: Callable[P, None]) -> Callable[P, None]:
    """Wrap a function so that bad input ends in one line and exit status 1.

    A warning becomes one line as well, and so does a lack of memory.
    """

    @functools.wraps(main)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
            try:
                main(*args, **kwargs)
            except UserError as error:
                fail(str(error))
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                fail("there is not enough memory; choose a smaller size")

    return wrapped


def fail(message: str, status: int = 1) -> None:
    """Print one line on standard error and leave."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)


def explain(error: HydraException | OmegaConfBaseException, config_name: str) -> str:
    """Say in one line what is wrong with the command line or the config."""
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        return f"unknown {group} {name!r}; there are {', '.join(error.options) or 'none'}"
    if isinstance(error, OverrideParseException):
        return (
            f"cannot understand {error.override!r}; write KEY=VALUE, with quotes around a value "
            "that holds special characters: 'content=\"a=b (1).jpg\"'"
        )
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    key = getattr(cause, "full_key", None)
    if key and isinstance(cause, ConfigAttributeError | ConfigKeyError):
        return _unknown_key(key, config_name)
    reason = (str(cause).splitlines() or [type(cause).__name__])[0]
    if reason.startswith("Ambiguous value"):
        reason += "; write [a,b] for a list, '\"a,b\"' for a name with a comma, or add --multirun"
    return f"{key}: {reason}" if key else reason


def _unknown_key(key: str, config_name: str) -> str:
    near = difflib.get_close_matches(key, _keys(SCHEMAS[config_name]), n=1)
    return f"unknown key {key}; " + (f"did you mean {near[0]}?" if near else "see --help")


def _keys(schema: type[Any], prefix: str = "") -> Iterator[str]:
    """Yield every key of a dataclass of dataclasses, such as objective.style_weight."""
    for field in fields(schema):
        yield prefix + field.name
        if isinstance(field.type, type) and is_dataclass(field.type):
            yield from _keys(field.type, f"{prefix}{field.name}.")


def _added_keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    """Yield the keys that `+key=value` added beside those of the schema; nothing reads them."""
    schema = OmegaConf.get_type(config)
    known = (
        {field.name for field in fields(schema)} if is_dataclass(schema) else {*map(str, config)}
    )
    for key in map(str, config):
        if key not in known:
            yield prefix + key
        elif isinstance(node := config._get_node(key), DictConfig):
            yield from _added_keys(node, prefix + key + ".")
