"""What a run leaves that ended before it made anything: nothing."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from styletransfer.runs.folder import ERROR

# What Hydra writes into the folder of a run, and of a sweep, before our code is called.
RECORD = (".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml", "multirun.yaml")


def remove_unused(folders: Iterable[Path]) -> None:
    """Remove the folders that hold nothing but Hydra's own files and what a job failed for.

    Args:
        folders: which this process has made; inner ones before those that they lie in.
    """
    for folder in folders:
        record = folder / ".hydra"
        # No patterns: compiling one takes memory, of which a run may have ended for want.
        found = {path for each in (folder, record) if each.is_dir() for path in each.iterdir()}
        logs = {path for path in found if path.suffix == ".log" and path.parent == folder}
        own = {record, *(folder / name for name in (*RECORD, ERROR)), *logs}
        if found <= own:
            with suppress(OSError):  # not worth a second complaint
                for path in found - {record}:
                    path.unlink()
                if record in found:
                    record.rmdir()
                folder.rmdir()
