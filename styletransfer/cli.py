"""What every script does around its one library call."""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import ParamSpec

from hydra.core.config_store import ConfigStore

from styletransfer.config import CompareConfig, DistillConfig, EvaluateConfig, TrainConfig
from styletransfer.errors import UserError

P = ParamSpec("P")


def register_schemas() -> None:
    """Make the dataclasses of `styletransfer.config` known to Hydra as `<script>_schema`."""
    store = ConfigStore.instance()
    store.store(name="train_schema", node=TrainConfig)
    store.store(name="compare_schema", node=CompareConfig)
    store.store(name="distill_schema", node=DistillConfig)
    store.store(name="evaluate_schema", node=EvaluateConfig)


def friendly(main: Callable[P, None]) -> Callable[P, None]:
    """Wrap a script's main so that bad input ends in one line and exit status 1."""

    @functools.wraps(main)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
            try:
                main(*args, **kwargs)
            except UserError as error:
                print(f"error: {error}", file=sys.stderr)
                sys.exit(1)

    return wrapped
