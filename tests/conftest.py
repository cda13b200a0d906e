"""Tiny seeded networks and pictures: every test takes a moment and every number is known."""

import logging
import os
import signal
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from helpers import picture, tiny_network

from styletransfer.features import FeatureExtractor, vgg
from styletransfer.pictures import images

# A busy machine is no error, and what was found once is found again.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True)
hypothesis.settings.load_profile("suite")
# Tiny tensors gain nothing from threads, and the last bits depend on their number.
torch.set_num_threads(1)

LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all` runs slow tests too; `--kills=100` and the like break more than on every day."""
    parser.addoption("--all", action="store_true", help="run the tests marked slow as well")
    parser.addoption("--kills", type=int, default=10, help="runs to kill at random moments")
    parser.addoption("--lines", type=int, default=40, help="command lines to run")
    parser.addoption("--mutants", type=int, default=500, help="broken pictures to read")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    """The CPU, and a GPU where there is one."""
    return str(request.param)


@pytest.fixture
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def network() -> FeatureExtractor:
    """Two blocks in float64: conv1_1 to relu2_2."""
    return tiny_network()


@pytest.fixture
def content() -> torch.Tensor:
    return picture(seed=1)


@pytest.fixture
def style() -> torch.Tensor:
    return picture(seed=2, height=18, width=14)


@pytest.fixture
def tiny_vgg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let VGG-19 have a few channels only: same names, same layout, made in no time."""
    widths = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])
    monkeypatch.setitem(vgg.WIDTHS, "vgg19", widths)  # type: ignore[arg-type]


@pytest.fixture
def photos(tmp_path: Path) -> tuple[str, str]:
    """Paths of a content and a style picture."""
    paths = (tmp_path / "content.png", tmp_path / "style.png")
    for seed, path in enumerate(paths):
        images.write(path, picture(seed=seed, height=24, width=32))
    return str(paths[0]), str(paths[1])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to work in, with two pictures."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("content.png", "style.png")):
        images.write(name, picture(seed, height=24, width=32))
    return tmp_path


@pytest.fixture(autouse=True)
def _close_log_files() -> object:
    """Hydra opens a log file for each run and leaves it open."""
    root = logging.getLogger()
    before = root.handlers[:]
    level = root.level
    yield
    for handler in root.handlers[:]:
        if handler not in before:
            root.removeHandler(handler)
            handler.close()
    for handler in before:
        if handler not in root.handlers:
            root.addHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def heard() -> None:
    """Let signals end processes even where the tests were started to ignore them, as by nohup."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def signals() -> object:
    """Let Ctrl-C interrupt even where the tests were started to ignore it, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def vgg19_weights() -> str:
    """The path of real VGG-19 weights."""
    return os.environ["STYLETRANSFER_VGG19"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless asked; skip what needs a GPU or real weights without them."""
    if not config.option.all:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.stash[LEFT_OUT] = len(slow)
    for item in items:
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))
        if item.get_closest_marker("vgg") and not os.environ.get("STYLETRANSFER_VGG19"):
            item.add_marker(pytest.mark.skip(reason="STYLETRANSFER_VGG19 names no weights"))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take from a worker of pytest-xdist how many tests it has left out; each sees all of them."""
    node.config.stash[LEFT_OUT] = node.workeroutput.get("left_out", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell pytest-xdist's first process how many tests were left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how many tests were left out, and how they come."""
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{count} slow tests (attacks, trainings, several processes, browsers) were left out; "
            "they run with --all"
        )
