"""The meanings of keys, which are read from the source of the settings."""

import inspect
import time
from concurrent.futures import ThreadPoolExecutor

from styletransfer.settings import TrainConfig, help
from styletransfer.settings.help import meanings


def test_meanings_are_read_once_and_by_one_thread(monkeypatch):
    """Python 3.11 cannot parse in several threads at once, as pages that open together would."""
    read, at_work, most, seen = inspect.getsource, [], [], []

    def watched(base):
        at_work.append(base)
        most.append(len(at_work))
        seen.append(base)
        time.sleep(0.001)  # lets the other threads go on
        at_work.remove(base)
        return read(base)

    monkeypatch.setattr(inspect, "getsource", watched)
    monkeypatch.setattr(help, "_MEANINGS", {})
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: meanings(TrainConfig)["steps"], range(40))]
    assert len(set(found)) == 1
    assert set(most) == {1}
    assert len(seen) == len(set(seen))
