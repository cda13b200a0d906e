"""Going on where a run ended: `resume=FOLDER` and `resume=auto`."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.runs.folder import FREE_KEYS, RECORD, read_record
from styletransfer.runs.recipe import check_settings, settings


def own_settings(config: TrainConfig, folder: Path, typed: Iterable[str]) -> TrainConfig:
    """Return the settings that the run in `folder` was begun with, with `resume=auto`.

    Args:
        config: as composed from the command line; of it only `typed` keys that change no pixel
            are taken over.
        folder: of the run.
        typed: the keys on the command line, groups included.

    Raises:
        UserError: `folder` is not that of a run, or a typed key has another value there.
    """
    recorded = read_record(folder)["config"]
    try:
        nested = OmegaConf.create()
        for key, value in recorded.items():
            OmegaConf.update(nested, key, value)
        own = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(TrainConfig), nested))
        assert isinstance(own, TrainConfig)
    except OmegaConfBaseException as error:
        raise UserError(
            f"{folder / RECORD} was written by another version; start afresh"
        ) from error
    names, ours = list(typed), settings(config)
    meant = {key: value for key, value in ours.items() if _is_typed(key, names)}
    check_settings(recorded, recorded | meant)
    for preset in _presets(names):
        if any(recorded[key] != ours[key] for key in ours if key not in FREE_KEYS):
            raise UserError(
                f"{preset}= would change the settings that the run in {folder} was begun with; "
                f"leave it out, or start afresh without resume="
            )
    free = {key: getattr(config, key) for key in FREE_KEYS if key in meant}
    return replace(own, **free | {"resume": "auto"})


def finished_picture(config: TrainConfig, folder: Path) -> Path | None:
    """Return the picture of a run that is finished in `folder` and need not be done again.

    Raises:
        UserError: the run in that folder has other settings.
    """
    if config.resume != "auto" or not (folder / RECORD).exists():
        return None
    record: dict[str, Any] = read_record(folder)
    check_settings(record["config"], settings(config))
    picture = Path(record["picture"])
    if record["status"] != "finished" or not os.path.exists(picture):
        return None
    return picture


def _is_typed(key: str, typed: list[str]) -> bool:
    """Tell whether `key` was on the command line, itself or by its group."""
    return any(key == name or key.startswith(f"{name}.") for name in typed)


def _presets(typed: list[str]) -> list[str]:
    """Return the groups on the command line whose files set keys outside of them."""
    top = {name.partition(".")[0] for name in typed}
    return sorted(top - set(TrainConfig.__dataclass_fields__) - {"hydra"})
