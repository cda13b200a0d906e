"""Tiny seeded networks and pictures: every test takes a moment and every number is known."""

import logging
import signal

import pytest
import torch
from helpers import picture, tiny_network, write_pictures

from styletransfer.features import vgg
from styletransfer.system.signals import STOPPING

# Tiny tensors gain nothing from threads, and the last bits depend on their number.
torch.set_num_threads(1)

PLAIN = dict.fromkeys(STOPPING, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}


def pytest_addoption(parser):
    """`--all` runs slow tests too; `--kills=100` and the like break more than on every day."""
    parser.addoption("--all", action="store_true", help="run the tests marked slow as well")
    parser.addoption("--kills", type=int, default=10, help="runs to kill at random moments")
    parser.addoption("--lines", type=int, default=40, help="command lines to run")
    parser.addoption("--mutants", type=int, default=500, help="broken pictures to read")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    """The CPU, and a GPU where there is one."""
    return str(request.param)


@pytest.fixture
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def network():
    """Two blocks in float64: conv1_1 to relu2_2."""
    return tiny_network()


@pytest.fixture
def content():
    return picture(seed=1)


@pytest.fixture
def style():
    return picture(seed=2, height=18, width=14)


@pytest.fixture
def tiny_vgg(monkeypatch):
    """Let VGG-19 have a few channels only: same names, same layout, made in no time."""
    widths = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])
    monkeypatch.setitem(vgg.WIDTHS, "vgg19", widths)  # type: ignore[arg-type]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def desk(here):
    """The folder to work in, with two pictures."""
    write_pictures("content.png", "style.png")
    return here


@pytest.fixture
def photos(desk):
    """Their paths: a content and a style picture."""
    return str(desk / "content.png"), str(desk / "style.png")


@pytest.fixture(scope="session", autouse=True)
def _close_log_files():
    """Close each run's log file when Hydra takes it from the logger for the next run.

    It closes it before, but whoever still writes, as the studio's runs that are threads here, opens
    it again; left to the collector, it failed whichever test that met.
    """
    remove = logging.Logger.removeHandler

    def removed(logger, handler):
        remove(logger, handler)
        if type(handler) is logging.FileHandler:
            handler.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.Logger, "removeHandler", removed)
        yield


@pytest.fixture(autouse=True)
def _log_as_before(_close_log_files):
    """Leave no handler of a run behind."""
    root = logging.getLogger()
    before = [handler for handler in root.handlers if type(handler) is not logging.FileHandler]
    level = root.level
    yield
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    root.handlers[:] = before
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def heard():
    """Let signals end processes even where the tests were started to ignore them, as by nohup."""
    for number, handler in PLAIN.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture
def signals():
    """Handlers as a program begins with, for a test that has its own; put back afterwards."""
    before = {number: signal.signal(number, handler) for number, handler in PLAIN.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(config, items):
    """Leave slow tests out unless asked; skip what needs a GPU where there is none."""
    if not config.option.all:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    for item in items:
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))


def pytest_terminal_summary(terminalreporter, config):
    """Say which tests were left out, and how they come."""
    if not config.option.all:
        slow = "attacks, trainings, several processes, browsers"
        terminalreporter.write_line(f"slow tests ({slow}) were left out; they run with --all")
