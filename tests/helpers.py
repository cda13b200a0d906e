"""Helpers that several test files share."""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from styletransfer.cli import main
from styletransfer.errors import UserError
from styletransfer.features import vgg
from styletransfer.job.choices import Choices
from styletransfer.job.prepare import load
from styletransfer.job.sources import Sources
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion, Losses
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.optimize.run import Run
from styletransfer.pictures import images
from styletransfer.runs.watchers import Metrics
from styletransfer.settings import ObjectiveConfig, OptimizerConfig, StyleTransferConfig
from styletransfer.settings.compose import compose, settings_of
from styletransfer.settings.registry import commands
from styletransfer.system.locks import output_locked

ROOT = Path(__file__).resolve().parents[1]
MODES = list(LOSS_MODES)
LAYERS = ["objective.content_layers=[relu2_1]", "objective.style_layers=[relu1_1,relu2_1]"]
# Channels of each convolution, block by block: VGG-19 with few channels; stride 16 at relu5_1.
VGG19 = ((3, 4), (4, 5), (5, 5, 4, 5), (6, 5, 5, 5), (6,))


def tiny_network(widths=((4, 4), (6, 6)), seed=0, **options):
    """Return a VGG of few channels in float64; its random weights are the same on every CPU."""
    network = vgg.build(widths, **options).double()
    vgg.randomize(network, seed)
    return network


def state_of(network, widths=((4, 4), (6, 6))):
    """Return the network's tensors by torchvision's names."""
    return {
        f"{key}.{kind}": getattr(network.layers[name], kind).detach().clone()
        for name, key in vgg.state_keys(widths).items()
        for kind in ("weight", "bias")
    }


def picture(seed=0, height=16, width=20):
    """Return seeded noise (1, 3, height, width) in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(1, 3, height, width, generator=generator, dtype=torch.float64)


def write_pictures(*paths, height=24, width=32):
    """Write a picture of noise to each path, with seeds 0, 1, 2, ..."""
    for seed, path in enumerate(paths):
        images.write(path, picture(seed, height, width))


def needs(extra, *packages):
    """Skip the test or the file that calls it if a package of an extra is missing; return the last.

    The summary of a run of pytest counts what was skipped for each extra.
    """
    for name in packages:
        package = pytest.importorskip(name, reason=f"needs the extra [{extra}]")
    return package


def composed(command, *overrides):
    """Return the settings that a command, or that of a name, gets from KEY=VALUE words."""
    command = commands()[command] if isinstance(command, str) else command
    return settings_of(compose(command, overrides))


def status_of(*words, run=main):
    """Run the console command with arguments `words` in this process; return its exit status."""
    try:
        run(words)
    except SystemExit as exit:
        return exit.code or 0
    return 0


def call(capsys, *words, run=main):
    """Run the console command in this process; return its exit status and what it printed."""
    return status_of(*words, run=run), capsys.readouterr()


def process(*command, **options):
    """Run a command in a process with one thread; return its result, with output as text."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | options.pop("env", {})
    environment.pop("PYTHONUNBUFFERED", None)
    options |= {"env": environment, "capture_output": True, "text": True}
    return subprocess.run(command, check=False, **options)


def begun(*command, env, stderr=subprocess.PIPE, **options):
    """Start a command in a new process group; return the Popen, with pipes for its output."""
    options |= {"stdout": subprocess.PIPE, "stderr": stderr, "text": True}
    return subprocess.Popen(command, env=env, process_group=0, **options)


def until(is_so, patience=300):
    """Wait until `is_so()` is true; fail after `patience` seconds."""
    end = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def lines_of(stderr):
    """Return the lines of the text `stderr`, except progress bars."""
    lines = re.split(r"\r +\r|[\r\n]+", stderr)
    return [line for line in lines if line and not re.search(r"step/s|s/step|/\d+ steps, ", line)]


def refusal(capsys, *words, run=main):
    """Assert that a command fails with status 1 and prints one line of error; return the line."""
    capsys.readouterr()
    status, printed = call(capsys, *words, run=run)
    lines = lines_of(printed.err)
    assert (status, len(lines)) == (1, 1), printed.err
    assert lines[0].startswith("error: ")
    return lines[0]


@contextmanager
def largest_file(size):
    """Limit the files that this process writes to `size` bytes, as if the disk were full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def press(number=signal.SIGTERM):
    """Send a signal to this process."""
    os.kill(os.getpid(), number)


def stop_after(step, monkeypatch, number=signal.SIGTERM):
    """Make runs send a signal to this process during the callback of `step`."""
    real = Metrics.__call__

    def pressed(self, iterate):
        real(self, iterate)
        if iterate.step == step:
            press(number)

    monkeypatch.setattr(Metrics, "__call__", pressed)


def metrics_of(folder):
    """Return the lines of metrics.jsonl in a run's folder, as dicts."""
    return [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]


def record_of(folder):
    """Return the content of run.json in a run's folder."""
    return json.loads(Path(folder, "run.json").read_text())


def files_in(folder):
    """Return relative path -> bytes of each file below a folder."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def relative_error(actual, expected):
    return float((actual - expected).norm() / expected.norm())


def layers(**settings):
    """Return an ObjectiveConfig whose layers `tiny_network` has, with other `settings`."""
    defaults = {"content_layers": ["relu2_1"], "style_layers": ["relu1_1", "relu2_1"]}
    defaults |= {"content_weight": 0.5, "style_weight": 2.0}
    return ObjectiveConfig(**(defaults | settings))


def make_objective(mode, network, content, style, **settings):
    criterion = Criterion.of(layers(**settings))
    return Objective(network, LOSS_MODES[mode], criterion, pair(content, style))


def gradient(objective, image):
    """Return d(total)/d(image) at a copy of `image`."""
    leaf = image.clone().requires_grad_()
    objective.evaluate(leaf)
    assert leaf.grad is not None
    return leaf.grad


def run_settings(optimizer="lbfgs", **settings):
    """Return settings of a run with 5 steps at one scale and 20 pixels, or as in `settings`."""
    if isinstance(optimizer, str):
        optimizer = OptimizerConfig(optimizer, 1.0 if optimizer == "lbfgs" else 0.02)
    defaults: dict[str, Any] = {"size": 20, "steps": 5, "scales": 1, "objective": layers()}
    return StyleTransferConfig(optimizer=optimizer, **(defaults | settings))


def loaded(config, **given):
    """Return the pictures of a job; those in `given`, by setting, replace files."""
    choices = Choices.of(config)
    return load(choices, Sources.read(config, choices.pyramid, given))


def job_with(config, network, mode, pictures):
    """Return the job of `config` with this network, loss mode and pictures."""
    return replace(Choices.of(config), mode=mode).job(network, pictures)


def with_bowl(monkeypatch, bowl):
    """Make runs minimise `bowl` in place of their objective; return `bowl`."""
    monkeypatch.setattr("styletransfer.optimize.run.objective_of", lambda *_: bowl)
    return bowl


@dataclass
class Bowl:
    """A Bowl is an objective with a known minimum: the mean of (image - target)^2.

    Attributes:
        target: the picture (1, 3, H, W) with loss 0.
        broken: numbers of the evaluations, from 1, that give NaN for the loss and its gradient.
        points: the pictures at which it was evaluated.
    """

    target: Tensor
    broken: Any = ()
    points: list[Tensor] = field(default_factory=list)

    def evaluate(self, image):
        self.points.append(image.detach().clone())
        loss = (image - self.target).square().mean()
        if len(self.points) in self.broken:
            loss = loss * float("nan")
        loss.backward()
        return Losses({"bowl": loss.detach()})


def check_error(words, make, /, *given, **named):
    """Assert that `make(*given, **named)` raises a UserError of one line that matches `words`."""
    with pytest.raises(UserError, match=words) as refused:
        make(*given, **named)
    assert "\n" not in str(refused.value)


def check_kept(capsys, words, read, ending):
    """Assert that the command `words` refuses an output that is a link to a file that it reads.

    `read` are names of such files, and `ending` is the extension of the output.
    """
    for number, name in enumerate(read):
        output = f"out{number}{ending}"
        os.link(name, output)
        before = files_in(".")
        assert "would overwrite" in refusal(capsys, *words, f"output={output}"), name
        assert files_in(".") == before, name


def check_one_writer(capsys, words, ending):
    """Assert that the command `words` refuses an output that another command is writing."""
    Path("new").mkdir()
    Path("linked").symlink_to("new")
    with output_locked(f"new/out{ending}"):
        before = files_in(".")
        line = refusal(capsys, *words, f"output=linked/out{ending}")
        assert f"another command is writing linked/out{ending}; wait for it" in line
        assert files_in(".") == before


def check_too_large(capsys, monkeypatch, words, ending):
    """Assert that the command `words` refuses an output that is too large for its format.

    Formats that have a limit get one of 15 pixels. Nothing is painted, and no file is written.
    """
    monkeypatch.setattr(images, "LONGEST", dict.fromkeys(images.LONGEST, 15))
    monkeypatch.setattr(Run, "__iter__", pytest.fail)
    before = files_in(".")
    line = refusal(capsys, *words, f"output=x{ending}")
    assert re.search(f"cannot write x{ending}: {ending} cannot hold .*, 15 at most; ", line)
    assert files_in(".") == before


def check_refused(make, cases):
    """Assert that `make(**given)` raises a UserError with `words`, for each (given, words)."""
    for given, words in cases:
        check_error(re.escape(words), make, **given)
