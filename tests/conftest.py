"""Options, fixtures with tiny seeded networks and pictures, and a clean state for each test."""

import gc
import logging
import os
import re
import signal
from collections import Counter
from xml.etree import ElementTree

import pytest
import torch
from helpers import picture, tiny_network, write_pictures
from pretended import pretended_gpu

from styletransfer.copying import pieces
from styletransfer.features import vgg
from styletransfer.system.signals import STOPPING

# Help and progress bars fit the terminal, which has this width in each test.
os.environ["COLUMNS"] = "100"
# Threads do not speed up tiny tensors, and the last bits depend on the number of threads.
torch.set_num_threads(1)
# Processes that compile for torch.compile take longer to start than tiny functions to compile.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
# Waiting for the disk protects from a power cut only, and takes a tenth of the tests' time.
os.fsync = lambda descriptor: None

# Signal -> its handler in a new Python process.
PLAIN = dict.fromkeys(STOPPING, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}


def pytest_addoption(parser):
    """Add `--all` and `--but`, which say what is run, and the numbers `--kills` and `--seeds`."""
    parser.addoption("--all", action="store_true", help="run the tests marked slow as well")
    passed = "leave out the tests that passed in the run of this file, which --junitxml wrote"
    parser.addoption("--but", metavar="REPORT", help=passed)
    parser.addoption("--kills", type=int, default=1, help="runs to kill at random moments")
    parser.addoption("--seeds", type=int, default=40, help="broken files that each test makes")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    """Return "cpu", then "cuda" where a GPU is available."""
    return str(request.param)


@pytest.fixture
def gpu(monkeypatch):
    """Pretend that there is a GPU; return a Counter of how often the CPU waits for it.

    Pieces of a painting are joined once a size: further tries repeat the same operations.
    """
    monkeypatch.setattr(pieces, "TRIES", 1)
    with pretended_gpu() as waits:
        yield waits


@pytest.fixture
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def network():
    """Return a feature extractor of two blocks in float64, conv1_1 to relu2_2."""
    return tiny_network()


@pytest.fixture
def content():
    return picture(seed=1)


@pytest.fixture
def style():
    return picture(seed=2, height=18, width=14)


@pytest.fixture
def tiny_vgg(monkeypatch):
    """Reduce VGG-19 to 4 channels per layer, with the same names, so that it is fast."""
    widths = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])
    monkeypatch.setitem(vgg.WIDTHS, "vgg19", widths)  # type: ignore[arg-type]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Make an empty folder the current folder, and return it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def desk(here):
    """Write content.png and style.png into the current folder; return the folder."""
    write_pictures("content.png", "style.png")
    return here


@pytest.fixture
def photos(desk):
    """Return the paths of a content image and a style image in the current folder."""
    return str(desk / "content.png"), str(desk / "style.png")


@pytest.fixture(scope="session")
def browser():
    """Start one browser for all tests; skip without the extra [browser] or a Chromium."""
    from studio.studio_pages import browsing

    with browsing() as browser:
        yield browser


@pytest.fixture(autouse=True)
def _log_as_before():
    """Restore the root logger's handlers and level after each test."""
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
    """Give signals that nohup made ignored their usual handlers, so that they end processes."""
    for number, handler in PLAIN.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="module", autouse=True)
def _fair():
    """Check that a test file leaves this process its scheduling policy.

    A process in real time, and each process that it starts, takes the processors from all others.
    """
    policy = getattr(os, "sched_getscheduler", lambda pid: None)
    before = policy(0)
    yield
    assert policy(0) == before


@pytest.fixture
def signals():
    """Use the usual signal handlers during a test; restore the old ones afterwards."""
    before = {number: signal.signal(number, handler) for number, handler in PLAIN.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that needs a symbolic link or a named pipe where the system makes none."""
    try:
        return (yield)
    except OSError as error:
        if getattr(error, "winerror", None) == 1314:  # a privilege is not held
            pytest.skip("this user may make no symbolic links")
        raise
    except AttributeError as error:
        if error.name == "mkfifo":
            pytest.skip("this system has no os.mkfifo")
        raise


def pytest_collection_modifyitems(config, items):
    """Deselect slow tests without `--all`, and what `--but` names; skip GPU tests without CUDA.

    With `--all`, files of many slow tests come first, so that processes end at the same time.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    if config.option.all:
        counts = Counter(item.path for item in slow)
        items.sort(key=lambda item: -counts[item.path])
    else:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    if config.option.but:
        cases = ElementTree.parse(config.option.but).iter("testcase")
        # A case that failed or was skipped has a child that says so.
        passed = {(case.get("classname"), case.get("name")) for case in cases if not len(case)}
        again = [item for item in items if _case(item) in passed]
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if _case(item) not in passed]
    for item in items:
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))


def _case(item):
    """Return what a JUnit report says of a test: the name of its module and its own."""
    path, _, name = item.nodeid.partition("::")
    return path.removesuffix(".py").replace("/", "."), name


def pytest_collection_finish():
    """Look for garbage seldom, and not among what is imported: that takes a seventh of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_terminal_summary(terminalreporter, config):
    """Print what was left out, why, and what would run it."""
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    for reason, count in sorted(skipped.items()):
        terminalreporter.write_line(f"skipped {count} (tests, or whole files): {reason}")
    extras = sorted(set(re.findall(r"the extra \[(\w+)\]", " ".join(skipped))))
    if extras:
        terminalreporter.write_line(
            f"these extras run them: pip install -e '.[{','.join(extras)}]'"
        )
    if not config.option.all:
        slow = "attacks, trainings, several processes, browsers"
        terminalreporter.write_line(f"slow tests ({slow}) were left out; they run with --all")
