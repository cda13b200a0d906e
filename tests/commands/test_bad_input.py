"""Bad input: one clear line on standard error, a non-zero exit, nothing half-written.

Most cases call the script's `main` in this process, where the network has a few channels; a handful
are real processes.
"""

import errno
import importlib.util
import os
import re
import struct
import sys
import warnings
import zlib
from pathlib import Path

import pytest
import torch
from helpers import ROOT, picture, run_script
from PIL import Image
from safetensors.torch import save_file

from styletransfer.cli.errors import one_line_errors
from styletransfer.errors import UserError
from styletransfer.features import vgg, weights
from styletransfer.pictures import images
from styletransfer.runs import paint as paint_module

SCRIPT = ROOT / "scripts" / "train.py"


@pytest.fixture(scope="session")
def main():
    spec = importlib.util.spec_from_file_location("train_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder to work in, with good and bad files."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("content.png", "style.png")):
        images.write(name, picture(seed, 24, 32))
    good = Path("content.png").read_bytes()
    Path("folder").mkdir()
    Path("folder.png").mkdir()
    Path("empty.png").touch()
    Path("truncated.png").write_bytes(good[: len(good) // 2])
    Path("text.jpg").write_text("This is not a picture.\n" * 50)
    for width, height in ((1, 1), (3, 4000), (7, 400)):
        Image.new("RGB", (width, height), "teal").save(f"{width}x{height}.png")
    # 900 million pixels by its header: the first chunk, behind eight bytes of signature.
    header = b"IHDR" + struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    Path("bomb.png").write_bytes(good[:8] + chunk + good[33:])
    Image.new("RGBA", (32, 32), (0, 0, 0, 0)).save("invisible.png")
    save_file({"features.0.weight": torch.zeros(5, 3, 3, 3)}, "other.safetensors")
    Path("text.pth").write_text("hello")
    Path("locked").mkdir(mode=0o500)
    yield tmp_path
    Path("locked").chmod(0o700)


def call(main, monkeypatch, capsys, *overrides):
    """Run the script's main on the tiny preset; return its exit status and what it printed."""
    given = {"content": "content.png", "style": "style.png"}
    keys = {override.split("=")[0] for override in overrides}
    start = ["experiment=tiny", *(f"{k}={v}" for k, v in given.items() if k not in keys)]
    monkeypatch.setattr(sys, "argv", ["train.py", *start, *overrides])
    status = 0
    try:
        main()
    except SystemExit as exit:
        status = exit.code
    return status, capsys.readouterr()


def errors_of(stderr):
    """The lines on standard error but for what a progress bar leaves."""
    lines = re.split(r"[\r\n]+", stderr)
    return [line for line in lines if line.strip() and not re.search(r"step/s|s/step", line)]


def left_behind(folder):
    """What a failed run left: beside its own record, this should be nothing."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and ".hydra" not in path.parts and path.suffix != ".log"
    )


BAD = {
    # Colours.
    "color": (["color=mine"], r"unknown color 'mine'; choose style, content_palette, content_lum"),
    "color_strength": (["color_strength=2"], r"color_strength=2\.0 must be from 0 to 1"),
    "no color_strength": (["color_strength=nan"], r"color_strength=nan must be from 0 to 1"),
    # Pictures.
    "missing": (["content=nowhere.png"], r"nowhere\.png does not exist; check the path"),
    "missing style": (["style=nowhere.png"], r"nowhere\.png does not exist; check the path"),
    "folder": (["content=folder"], r"content=folder: there is no picture in that folder"),
    "folder named png": (
        ["content=folder.png"],
        r"folder\.png: there is no picture in that folder",
    ),
    "folder without pictures": (
        ["style=folder.png"],
        "folder.png holds no picture; name a",
    ),
    "empty": (["content=empty.png"], r"empty\.png is empty \(0 bytes\)"),
    "truncated": (["style=truncated.png"], r"truncated\.png is a damaged or truncated PNG file"),
    "text": (["content=text.jpg"], r"text\.jpg is no JPEG, PNG, .* picture, whatever its name"),
    "bomb": (["content=bomb.png"], r"bomb\.png has 30000 x 30000 = 900,000,000 pixels, more than"),
    "invisible": (["style=invisible.png"], r"invisible\.png is fully transparent"),
    "one pixel": (["content=1x1.png"], r"1x1\.png shows 1 x 1 pixels; each side needs at least 8"),
    "one pixel style": (["style=1x1.png"], r"1x1\.png shows 1 x 1 pixels"),
    "thin": (["content=3x4000.png"], r"3x4000\.png shows 3 x 4000 pixels"),
    "thin style": (["style=7x400.png"], r"7x400\.png shows 7 x 400 pixels; .* at least 8"),
    "no picture": (["content="], r"\. is a folder"),
    "size too small": (
        ["size=12", "scales=1", "objective.content_layers=[relu5_1]"],
        r"content\.png comes down to 12 x 9 pixels, too small for relu5_1: .* at least 16; raise",
    ),
    "coarsest scale too small": (
        ["size=32", "scales=3", "steps=8", "objective.content_layers=[relu5_1]"],
        r"content\.png comes down to 8 x 6 pixels, too small for relu5_1: .* lower scales",
    ),
    "unknown init": (["init=mirror"], r"unknown init 'mirror'; choose content, style, noise or a"),
    "init is a folder": (["init=folder"], r"folder is a folder"),
    "init is text": (["init=text.jpg"], r"text\.jpg is no JPEG"),
    # Choices.
    "layer": (
        ["objective.style_layers=[relu1_1,relu9_1]"],
        r"unknown layer relu9_1; this network has conv1_1, relu1_1,",
    ),
    "loss mode": (["loss_mode.name=magic"], r"unknown loss mode 'magic'; choose one of fake_back"),
    "loss mode group": (["loss_mode=magic"], r"unknown loss_mode 'magic'; there are autograd_f"),
    "optimizer": (["optimizer.name=sgd"], r"unknown optimizer 'sgd'; choose lbfgs or adam"),
    "optimizer group": (["optimizer=sgd"], r"unknown optimizer 'sgd'; there are adam, lbfgs"),
    "features": (["features.name=resnet"], r"unknown features 'resnet'; choose bundled, vgg19 or"),
    "features group": (["features=resnet"], r"unknown features 'resnet'; there are bundled, vgg16"),
    "pooling": (["features.pooling=median"], r"unknown features\.pooling 'median'"),
    "normalization": (["objective.normalization=l1"], r"unknown objective\.normalization 'l1'"),
    "device": (["device=tpu"], r"unknown device 'tpu'; choose auto, cpu, cuda, cuda:N, mps or"),
    "precision": (["precision=float8"], r"unknown precision 'float8'; choose auto, bfloat16, fl"),
    # Numbers.
    "steps 0": (["steps=0"], r"steps=0 must be 1 or more"),
    "size too large": (["size=2147483648"], r"size=2147483648 must be at most 1048576 pixels"),
    "size 0": (["size=0"], r"size=0 must be 1 or more"),
    "scales": (["scales=-1"], r"scales=-1 must be 0 or more"),
    "seed": (["seed=-1"], r"seed=-1 must be 0 or more"),
    "huge seed": (["seed=99999999999999999999"], r"must be below 2\^63"),
    "snapshots": (["snapshot_every=-1"], r"snapshot_every=-1 must be 0 or more"),
    "negative": (["objective.style_weight=-1"], r"objective\.style_weight=-1\.0 must be a finite"),
    "nan": (["objective.content_weight=nan"], r"objective\.content_weight=nan must be a finite"),
    "inf": (["objective.tv_weight=inf"], r"objective\.tv_weight=inf must be a finite"),
    "layer weight": (["objective.style_layer_weights=[1,nan]"], r"style_layer_weights=nan must"),
    "all 0": (
        ["objective.content_weight=0", "objective.style_weight=0"],
        r"all content and style weights are 0: nothing to optimise",
    ),
    "learning rate": (
        ["optimizer.learning_rate=0"],
        r"optimizer\.learning_rate=0\.0 must be above",
    ),
    "averaging": (["optimizer.averaging=1"], r"optimizer\.averaging=1\.0 must be 0 or more, below"),
    # Keys and types, which Hydra finds.
    "key": (["stepps=3"], r"unknown key stepps; did you mean steps\?"),
    "nested key": (["objective.style_wieght=3"], r"did you mean objective\.style_weight\?"),
    "strange key": (["xyzzy=3"], r"unknown key xyzzy; see --help"),
    "added key": (["+stepps=3"], r"unknown key stepps; did you mean steps\?"),
    "added nested key": (["+objective.foo=3"], r"unknown key objective\.foo"),
    "word for a number": (["size=big"], r"size: Value 'big' of type 'str' could not be converted"),
    "fraction for a whole": (["steps=1.5"], r"steps: Value '1\.5' .* could not be converted to In"),
    "word for a list": (
        ["objective.style_layers=relu1_1"],
        r"objective\.style_layers: Invalid val",
    ),
    "null": (["features.weights=null"], r"features\.weights: .*not Optional"),
    "nothing for a number": (["size="], r"size: Value '' of type 'str' could not be converted"),
    "no equals sign": (["content"], r"cannot understand 'content'; write KEY=VALUE"),
    "equals sign": (["device=a=b"], r"cannot understand 'device=a=b'; .*quotes"),
    "comma": (["device=a,b"], r"Ambiguous value for argument 'device=a,b'"),
    "nested list": (["objective.style_layers=[[relu1_1]]"], r"style_layers=.* must be a list of"),
    "too large": (["size=99999999999999999999"], r"size=9+ is too large; it must be below 2\^63"),
    "no loss mode": (["loss_mode=null"], r"loss_mode=null: give one name, or leave it out"),
    "no network": (["features=null"], r"features=null: give one name, or leave it out"),
    "number for a group": (["optimizer=3"], r"group override must be a string.*; see --help"),
    # Flags and Hydra's own keys.
    "flag": (["--frobnicate"], r"unknown flag --frobnicate; see --help"),
    "config name": (["-cn", "other"], r"-cn: a command has one config; --config-dir adds"),
    "config path": (["--config-path", "folder"], r"--config-path: a command has one config"),
    "completion": (["--shell-completion"], r"unknown flag --shell-completion"),
    "rerun": (["--experimental-rerun", "nope"], r"unknown flag --experimental-rerun"),
    "flag without its value": (["--cfg"], r"--cfg: expected one argument; see --help"),
    "config folder": (["--config-dir", "nowhere"], r"nowhere.*not found"),
    "name of the job": (["hydra.job.name=x/y"], r"hydra\.job\.name=x/y: a job's name becomes a"),
    "sweep into one file": (
        ["--multirun", "steps=1,2", "output=out.png"],
        r"all jobs of a sweep would write out\.png; leave output= out",
    ),
    "mandatory": (["size=???"], r"size is missing; give size=VALUE"),
    "reference": (["tile=${nowhere}"], r"tile: Interpolation key 'nowhere' not found"),
    "preset": (
        ["experiment=none_such"],
        r"unknown experiment 'none_such'; there are .*tutorial_0_3",
    ),
    # Outputs.
    "extension": (
        ["output=out.gif"],
        r"cannot write out\.gif: unknown extension '\.gif'; use \.png",
    ),
    "no extension": (["output=out"], r"cannot write out: unknown extension ''"),
    "output is a folder": (["output=folder.png"], r"cannot write folder\.png: it is a folder"),
    "output below a file": (["output=text.jpg/out.png"], r"cannot write text\.jpg/out\.png"),
    "run folder below a file": (["hydra.run.dir=text.jpg/run"], r"cannot write text\.jpg.*run"),
    "output is the content": (["output=content.png"], r"output=content\.png would overwrite"),
    "output is the style": (["output=./style.png"], r"would overwrite the style picture"),
    "output is the start": (
        ["init=style.png", "style=7x400.png", "output=folder/../style.png"],
        r"would overwrite the init picture; choose an",
    ),
    # Weights.
    "weights missing": (["features.weights=none.pth"], r"no weights file at none\.pth; check feat"),
    "weights of another network": (
        ["features.weights=other.safetensors"],
        r"other\.safetensors holds weights of another network: missing features\.0\.bias, .* more;"
        r" misshapen: features\.0\.weight is \(5, 3, 3, 3\), not \(4, 3, 3, 3\)",
    ),
    "weights are text": (["features.weights=text.pth"], r"text\.pth (holds|is not a readable)"),
    "weights are a picture": (
        ["features.weights=style.png"],
        r"must end in \.safetensors, \.pth or",
    ),
}


@pytest.mark.usefixtures("tiny_vgg")
@pytest.mark.parametrize(("overrides", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input(overrides, message, main, desk, monkeypatch, capsys):
    before = left_behind(desk)
    status, printed = call(main, monkeypatch, capsys, *overrides)
    (line,) = errors_of(printed.err)
    assert line.startswith("error: ")
    assert re.search(message, line), line
    assert status == 1
    assert printed.out == ""
    assert left_behind(desk) == before


@pytest.mark.usefixtures("tiny_vgg")
def test_good_input(main, desk, monkeypatch, capsys):
    """The harness above would pass on a script that always failed."""
    status, printed = call(main, monkeypatch, capsys, "output=out.png")
    assert (status, errors_of(printed.err)) == (0, [])
    assert printed.out.endswith("out.png\n")
    assert images.read("out.png").size == (24, 32)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.usefixtures("tiny_vgg", "desk")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_no_gpu(device, main, monkeypatch, capsys):
    status, printed = call(main, monkeypatch, capsys, f"device={device}")
    (line,) = errors_of(printed.err)
    assert line.startswith(f"error: device={device} is not here: 0 CUDA devices were found; choose")
    assert status == 1


@pytest.mark.cuda
@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_no_such_gpu(main, monkeypatch, capsys):
    status, printed = call(main, monkeypatch, capsys, "device=cuda:99")
    assert "error: device=cuda:99 is not here" in printed.err
    assert status == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.usefixtures("tiny_vgg", "desk")
@pytest.mark.parametrize("override", ["output=locked/out.png", "hydra.run.dir=locked/run"])
def test_unwritable_folder(override, main, monkeypatch, capsys):
    status, printed = call(main, monkeypatch, capsys, override)
    (line,) = errors_of(printed.err)
    assert re.match(r"error: cannot write locked/.*Permission denied", line)
    assert status == 1


@pytest.mark.usefixtures("tiny_vgg")
def test_full_disk_at_the_end(main, desk, monkeypatch, capsys):
    """Nothing half-written, and a picture that was there before is left as it was."""
    Path("out.png").write_bytes(b"older")
    real = Path.write_bytes

    def full(self, data):
        real(self, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    before = left_behind(desk)
    status, printed = call(main, monkeypatch, capsys, "output=out.png", "snapshot_every=0")
    (line,) = errors_of(printed.err)
    assert line.startswith("error: cannot write out.png: No space left on device")
    assert status == 1
    assert Path("out.png").read_bytes() == b"older"
    assert {Path(name).name for name in left_behind(desk)} - {*before} == {
        "metrics.jsonl",
        "run.json",
    }


@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_a_run_that_gives_up_prints_where_the_picture_is(main, monkeypatch, capsys):
    """And ends with one line and a non-zero exit."""
    status, printed = call(
        main, monkeypatch, capsys, "output=out.png", "objective.content_weight=1e300"
    )
    (line,) = errors_of(printed.err)
    assert re.match("error: the loss .*finite", line)
    assert status == 1
    assert printed.out.splitlines()[-1] == "out.png"
    assert "stopped early" in printed.out
    assert Path("out.png").exists()


@pytest.mark.usefixtures("tiny_vgg", "desk")
@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        SystemError("error return without exception set"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_too_little_memory(error, main, monkeypatch, capsys):
    def scarce(config, **given):
        raise error

    monkeypatch.setattr(paint_module, "prepare", scarce)
    status, printed = call(main, monkeypatch, capsys)
    (line,) = errors_of(printed.err)
    assert re.match(r"error: .*memory.*smaller size", line)
    assert status == 1


@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_ctrl_c_before_there_is_a_picture(main, monkeypatch, capsys):
    def interrupted(config, **given):
        raise KeyboardInterrupt

    monkeypatch.setattr(paint_module, "prepare", interrupted)
    status, printed = call(main, monkeypatch, capsys)
    assert errors_of(printed.err) == ["error: interrupted"]
    assert status == 130


@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_a_mistake_of_ours_keeps_its_traceback(main, monkeypatch, capsys):
    def broken(config, **given):
        raise ZeroDivisionError

    monkeypatch.setattr(paint_module, "prepare", broken)
    with pytest.raises(ZeroDivisionError):
        call(main, monkeypatch, capsys)


@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_config_errors_keep_their_traceback_on_demand(main, monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(Exception, match="stepps"):
        call(main, monkeypatch, capsys, "stepps=3")
    assert os.environ["HYDRA_FULL_ERROR"] == "1"


@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_the_environment_is_left_as_it_was(main, monkeypatch, capsys):
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    call(main, monkeypatch, capsys, "stepps=3")
    assert "HYDRA_FULL_ERROR" not in os.environ


@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_bundled_network_missing(main, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(weights, "BUNDLED", tmp_path / "bundled.safetensors")
    overrides = ("features=bundled", "features.weights=pretrained")
    status, printed = call(main, monkeypatch, capsys, *overrides)
    (line,) = errors_of(printed.err)
    assert re.match(r"error: .*bundled\.safetensors is missing or damaged; install", line)
    assert status == 1


@pytest.mark.usefixtures("tiny_vgg", "desk")
def test_download_unreachable(main, monkeypatch, capsys):
    def unreachable(name):
        raise UserError(f"{name}'s weights cannot be downloaded (no route); use features=bundled")

    monkeypatch.setattr(vgg, "pretrained_state", unreachable)
    status, printed = call(main, monkeypatch, capsys, "features.weights=pretrained")
    (line,) = errors_of(printed.err)
    assert "vgg19's weights cannot be downloaded" in line
    assert status == 1


def test_errors_are_one_line(capsys):
    with pytest.raises(SystemExit), one_line_errors():
        raise UserError("two\nlines\tand  spaces")
    assert capsys.readouterr().err == "error: two lines and spaces\n"


def test_warnings_are_one_line(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with one_line_errors():
            warnings.warn("an odd profile", stacklevel=1)
    assert capsys.readouterr().err == "note: an odd profile\n"


# Real processes: nothing of this is an artefact of running in one with pytest.


@pytest.mark.parametrize("name", ["text", "key", "extension"])
def test_bad_input_in_a_real_process(name, desk):
    overrides, message = BAD[name]
    before = left_behind(desk)
    start = ["experiment=tiny", "style=style.png"]
    if name != "text":
        start.append("content=content.png")
    done = run_script("train", *start, *overrides, cwd=desk)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert re.search(message, line), line
    assert left_behind(desk) == before
