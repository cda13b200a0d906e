"""The process that paints: one run after the other, told what to do through a pipe.

It says what happens in dicts with a "type" and the "id" of the run; `queue.py` listens.
"""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.runs.folder import RECORD
from styletransfer.studio.worker import Orders, become_a_child
from styletransfer.system.signals import signals_held


def main(pipe: Connection) -> None:
    """Paint what is asked for until the pipe ends."""
    become_a_child()
    orders = Orders(pipe)
    _warm_up()
    with suppress(OSError):  # the server is gone
        while (order := orders.next_run()) is not None:
            ended = _run(order, orders, pipe)
            pipe.send({"type": "ended", "id": order["id"], **ended})
            gc.collect()


def _warm_up() -> None:
    """Set torch up as a command does, and paint a tiny picture: the first one loads much."""
    from styletransfer.job.prepare import prepare
    from styletransfer.optimize.run import Run
    from styletransfer.system.devices import set_float32_precision
    from styletransfer.system.process import keep_freed_memory

    keep_freed_memory()
    set_float32_precision()
    with signals_held():
        Run(prepare(TrainConfig(size=64, steps=3, scales=1))).complete()


def _run(order: dict[str, Any], orders: Orders, pipe: Connection) -> dict[str, Any]:
    from styletransfer.runs.paint import paint
    from styletransfer.runs.recipe import own_settings
    from styletransfer.studio.guide import Guide
    from styletransfer.system.memory import is_out_of_memory

    folder = Path(order["folder"])
    try:
        with _logged(folder):
            config = order["config"] or own_settings(TrainConfig(), folder, [])
            finished = paint(config, folder, Guide(order, orders, pipe))
    except UserError as error:
        if not (folder / RECORD).exists():  # it was refused: nothing is kept
            (folder / "train.log").unlink(missing_ok=True)
        return {"status": "failed", "error": str(error)}
    except KeyboardInterrupt:
        return {"status": "stopped", "error": None}
    except Exception as error:
        if is_out_of_memory(error):
            return {"status": "failed", "error": "memory ran out; choose a smaller size"}
        said = " ".join(f"{type(error).__name__}: {error}".split())
        where = f"{folder}/train.log"
        return {"status": "failed", "error": f"a mistake of ours ({said}); see {where}"}
    if finished.problem:
        return {"status": "failed", "error": finished.problem}
    return {"status": "stopped" if finished.result.interrupted else "finished", "error": None}


@contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """Keep the log of a run in its folder, as the command line does, mistakes of ours included."""
    file = logging.FileHandler(folder / "train.log", encoding="utf-8", delay=True)
    file.setFormatter(logging.Formatter("[%(asctime)s][%(name)s][%(levelname)s] - %(message)s"))
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(file)
    try:
        yield
    except UserError:
        raise
    except Exception:
        logging.exception("a mistake of ours")
        raise
    finally:
        root.removeHandler(file)
        file.close()
