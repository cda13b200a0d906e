"""Makes the folders of a command line; if the command fails, removes those without a result."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from styletransfer.cli.errors import tell
from styletransfer.errors import UserError
from styletransfer.runs.folder import hydra_value
from styletransfer.runs.record import ERROR, FREE_KEYS
from styletransfer.system.files import new_folder

# File in a sweep's folder, in which Hydra writes the sweep's command line.
SWEEP = "multirun.yaml"


class RunFolders:
    """RunFolders makes the folders of runs, and removes those that hold no result.

    If `may_move` is true and a run's folder cannot be made, a temporary folder is made instead, and
    a note names it. This is for commands whose result is the file `output`.
    """

    def __init__(self) -> None:
        self.may_move = False
        self.made: list[Path] = []  # folders of runs and sweeps
        self.parents: list[Path] = []  # new parents of the folders in `made`, innermost first

    def look_at(self, config: DictConfig, words: list[str], is_sweep: bool) -> None:
        """Remember which folders Hydra will make for hydra.run.dir or hydra.sweep.dir in `words`.

        `config` is what Hydra composed from `words`. (UserError if the folder of a sweep holds a
        sweep with other settings.)
        """
        if not any(word.lstrip("+~").startswith(("hydra.run", "hydra.sweep")) for word in words):
            return
        key = "hydra.sweep.dir" if is_sweep else "hydra.run.dir"
        folder = Path(self.kept(OmegaConf.select(config, key)))
        if is_sweep and (folder / SWEEP).exists():
            then = hydra_value(folder, SWEEP, "hydra", "overrides", "task")
            if _of_a_picture(then or ()) != _of_a_picture(config.hydra.overrides.task):
                advice = "choose another folder with hydra.sweep.dir=FOLDER"
                raise UserError(f"{folder} holds a sweep of other settings; {advice}")

    def new(self, path: str, instead: str = "") -> str:
        """Return `instead`; if that is "", make a folder by `new_folder` and return its path."""
        if instead:
            return instead
        self.parents += absent(Path(path).parent)
        try:
            made = new_folder(path)
        except OSError as error:
            if not self.may_move:
                raise
            made = tempfile.mkdtemp(prefix="styletransfer-")
            tell(f"note: {path} cannot be made ({error.strerror}); the run's folder is {made}")
        self.made.append(Path(made).absolute())
        return made

    def kept(self, path: str) -> str:
        """Return `path`, which Hydra will make; remember its missing folders for `clear`."""
        missing = absent(Path(path))
        self.made += missing[:1]
        self.parents += missing[1:]
        return path

    def clear(self) -> None:
        """After an error, remove those folders of this command line that hold no result."""
        for folder in self.made:
            files = [name for _, _, names in os.walk(folder) for name in names]
            if all(name.endswith((".yaml", ".log", ERROR)) for name in files):
                shutil.rmtree(folder, ignore_errors=True)
        for folder in self.parents:  # `rmdir` leaves them if other runs have files there
            with suppress(OSError):
                folder.rmdir()


def absent(path: Path) -> list[Path]:
    """Return the absolute paths of `path` and its parents that do not exist, `path` first."""
    full = path.absolute()  # the working directory may have changed when the path is used
    return [folder for folder in (full, *full.parents) if not folder.exists()]


def _of_a_picture(words: Any) -> set[str]:
    """Return those of the KEY=VALUE words that can change the picture; keys in FREE_KEYS cannot."""
    return {word for word in map(str, words) if word.partition("=")[0] not in FREE_KEYS}
