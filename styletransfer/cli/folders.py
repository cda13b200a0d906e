"""The folders that a command line makes, and what is removed or restored if the command fails."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from styletransfer.runs.record import ERROR, RECORD
from styletransfer.system.files import new_folder


class RunFolders:
    """RunFolders makes the folders of runs, and undoes that for those that hold no result.

    `named` are the folders that the user names. Hydra makes these, and overwrites its own files of
    an earlier run there.
    """

    def __init__(self, named: Iterable[Path]) -> None:
        named = list(named)
        self.made = [folder for path in named for folder in absent(path)]  # inner ones first
        # run.json of an earlier run -> its content, and Hydra's files.
        self._earlier = {
            one / RECORD: ((one / RECORD).read_bytes(), _files_in(one / ".hydra"))
            for one in named
            if (one / RECORD).is_file()
        }

    def new(self, path: str, instead: str = "") -> str:
        """Make a new folder and return its path, see `new_folder`; or return `instead`."""
        if instead:
            return instead
        parents = absent(Path(path).parent)
        made = new_folder(path)
        self.made += [Path(made).absolute(), *parents]
        return made

    def kept(self, path: str) -> str:
        """Return `path`, a folder that Hydra makes unless it exists."""
        self.made += absent(Path(path))
        return path

    def clear(self) -> None:
        """After an error, remove the folders without a result, and restore an earlier run's files.

        Folders that were made are removed if they hold only Hydra's files and error.txt; a folder
        without Hydra's files only if it is empty: other runs may use it. If run.json of an earlier
        run is unchanged, its files that Hydra has overwritten are restored.
        """
        for folder in self.made:
            files = [name for _, _, names in os.walk(folder) for name in names]
            is_recorded = (folder / ".hydra").exists() or (folder / "multirun.yaml").exists()
            if is_recorded and all(name.endswith((".yaml", ".log", ERROR)) for name in files):
                shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                folder.rmdir()
        for record, (content, overwritten) in self._earlier.items():
            if record.is_file() and record.read_bytes() == content:
                for path, old in overwritten.items():
                    path.write_bytes(old)


def absent(path: Path) -> list[Path]:
    """Return those of `path` and its parent folders that do not exist, absolute, `path` first."""
    full = path.absolute()  # a job may change the working directory
    return [folder for folder in (full, *full.parents) if not folder.exists()]


def _files_in(folder: Path) -> dict[Path, bytes]:
    """Return path -> content of the files in a folder; empty if there is no folder."""
    return {path: path.read_bytes() for path in folder.glob("*") if path.is_file()}
