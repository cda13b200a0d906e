"""Going on where a run ended: `resume=FOLDER` and `resume=auto`."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.runs.folder import FREE_KEYS, RECORD, read_run
from styletransfer.runs.recipe import check_settings, settings
from styletransfer.settings.changes import plain


def own_settings(config: TrainConfig, folder: Path, typed: Collection[str]) -> TrainConfig:
    """Return the settings that the run in `folder` was begun with, with `resume=auto`.

    Args:
        config: of the command line; only `typed` keys that change no pixel are taken over.
        typed: the keys on the command line, groups included.

    Raises:
        UserError: `folder` is not that of a run, or a typed key has another value there.
    """
    recorded = read_run(folder).settings
    try:
        nested = OmegaConf.create()
        for key, value in recorded.items():
            OmegaConf.update(nested, key, plain(key, value))
        own = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(TrainConfig), nested))
        assert isinstance(own, TrainConfig)
    except (OmegaConfBaseException, ValueError, TypeError, AttributeError) as error:
        raise UserError(
            f"{folder / RECORD} was written by another version; start afresh"
        ) from error
    ours = settings(config, FREE_KEYS)
    is_typed = {
        key: any(key == name or key.startswith(f"{name}.") for name in typed) for key in ours
    }
    check_settings(
        recorded, recorded | {key: ours[key] for key in ours if is_typed[key]}, FREE_KEYS
    )
    # Groups whose files set keys outside of them.
    presets = {name.partition(".")[0] for name in typed} - {
        *TrainConfig.__dataclass_fields__,
        "hydra",
    }
    differs = any(recorded.get(key) != ours[key] for key in ours if key not in FREE_KEYS)
    if presets and differs:
        raise UserError(
            f"{min(presets)}= would change the settings that the run in {folder} was begun with; "
            f"leave it out, or start afresh without resume="
        )
    free = {key: getattr(config, key) for key in FREE_KEYS if is_typed[key]}
    return replace(own, **free | {"resume": "auto"})


def finished_picture(config: TrainConfig, folder: Path) -> Path | None:
    """Return the picture of a run finished in `folder`, if any (UserError: of other settings)."""
    if config.resume != "auto" or not (folder / RECORD).exists():
        return None
    run = read_run(folder)
    check_settings(run.settings, settings(config, FREE_KEYS), FREE_KEYS)
    return run.output if run.status == "finished" and run.output.exists() else None
