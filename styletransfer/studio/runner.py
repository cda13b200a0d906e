"""The runner: a process that receives orders through a pipe and paints one run after the other."""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from styletransfer.cli.errors import LogFile
from styletransfer.errors import UserError
from styletransfer.runs.claim import made_by
from styletransfer.runs.record import RECORD
from styletransfer.settings import TrainConfig
from styletransfer.studio.worker import Orders, RunLink, become_a_child
from styletransfer.system.allocator import keep_freed_memory, return_freed_memory


def main(pipe: Connection) -> None:
    """Paint the runs that come through `pipe`, until its other end is closed or sends None."""
    become_a_child()
    orders = Orders(pipe)
    with suppress(OSError):  # the pipe breaks if the server ends
        pipe.send({"type": "ready", "pace": _warm_up()})
        while (order := orders.next_run()) is not None:
            try:
                ended = _run(order, RunLink(order["id"], orders, pipe))
            except OSError as error:  # the log cannot be written, as on a full disk
                said = f"cannot write {order['folder']}: {error.strerror}; make room on the disk"
                ended = {"status": "failed", "error": said}
            pipe.send({"type": "ended", "id": order["id"], **ended})
            gc.collect()
            return_freed_memory()


def _warm_up() -> float | None:
    """Set up torch and paint two small pictures; the first one loads the feature extractor.

    Return the seconds per pixel of work (see `guide.work`) of the second picture.
    """
    from styletransfer.job.prepare import prepare
    from styletransfer.optimize.run import Run
    from styletransfer.settings.compose import compose, settings_of
    from styletransfer.studio.guide import Clock
    from styletransfer.system.devices import set_cuda_arithmetic
    from styletransfer.train import train

    keep_freed_memory()
    set_cuda_arithmetic()
    default = settings_of(compose(train))
    for side, steps in ((64, 3), (192, 4)):
        config = replace(default, size=side, steps=steps, scales=1)
        run, clock = Run(prepare(config)), Clock()
        for step in run:
            clock.step(run, step)
    del run
    return_freed_memory()
    return clock.pace


def _run(order: dict[str, Any], link: RunLink) -> dict[str, Any]:
    from styletransfer.job.prepare import prepare
    from styletransfer.optimize import Run
    from styletransfer.runs.recording import files_written, recorded
    from styletransfer.runs.resume import own_settings
    from styletransfer.studio.guide import Guide
    from styletransfer.system.devices import is_out_of_memory

    folder = Path(order["folder"])
    with _logged(folder) as log, made_by(order["record"]):
        try:
            if order["kind"] != "picture":
                from styletransfer.studio import film

                return {"status": film.paint(order, link), "error": None}
            config = order["config"] or own_settings(TrainConfig(), folder, [])
            guide = Guide(link)
            run = Run(prepare(config, outputs=files_written(config, folder)))
            with recorded(run, config, folder) as record:
                for step in run:
                    record(step)
                    with record.clock_stopped():
                        guide.step(record, step)
            if record.outcome.losses:
                with suppress(KeyboardInterrupt):
                    guide.end(record)
        except UserError as error:
            if not (folder / RECORD).exists():  # the run was refused before its first step
                log.close()
                (folder / "train.log").unlink(missing_ok=True)
            return {"status": "failed", "error": str(error), "key": error.key}
        except KeyboardInterrupt:
            return {"status": "stopped", "error": None}
        except Exception as error:
            logging.exception("a mistake of ours")
            if is_out_of_memory(error):
                said = "memory ran out; choose a smaller size"
                return {"status": "failed", "error": said, "key": "size"}
            said = " ".join(f"{type(error).__name__}: {error}".split())
            said = f"a mistake of ours ({said}); see {folder}/train.log"
            return {"status": "failed", "error": said}
    if record.problem:
        return {"status": "failed", "error": record.problem}
    return {"status": record.status, "error": None}


@contextmanager
def _logged(folder: Path) -> Iterator[logging.Handler]:
    """Write the log of a run to train.log in its folder; yield the file's handler."""
    file = LogFile(folder / "train.log", encoding="utf-8", delay=True)
    file.setFormatter(logging.Formatter("[%(asctime)s][%(name)s][%(levelname)s] - %(message)s"))
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(file)
    try:
        yield file
    finally:
        root.removeHandler(file)
        file.close()
