"""Bad input: one clear line on standard error, a non-zero exit, nothing half-written.

What any face of the package refuses is asked of the Python API, which says the same words without
composing anew; what only a command line can get wrong is asked of `styletransfer train`.
"""

import errno
import os
import re
import struct
import warnings
import zlib
from pathlib import Path

import pytest
import torch
from helpers import picture, run_script
from PIL import Image
from safetensors.torch import save_file

from styletransfer import UserError, stylize
from styletransfer.cli import main
from styletransfer.cli.errors import one_line_errors
from styletransfer.features import vgg, weights
from styletransfer.pictures import images
from styletransfer.runs import paint as paint_module

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with good and bad files."""
    folder = tmp_path_factory.mktemp("desk")
    for seed, name in enumerate(("content.png", "style.png")):
        images.write(folder / name, picture(seed, 24, 32))
    good = (folder / "content.png").read_bytes()
    (folder / "folder.png").mkdir()
    (folder / "empty.png").touch()
    (folder / "truncated.png").write_bytes(good[: len(good) // 2])
    (folder / "text.jpg").write_text("This is not a picture.\n" * 50)
    for width, height in ((1, 1), (3, 4000), (7, 400)):
        Image.new("RGB", (width, height), "teal").save(folder / f"{width}x{height}.png")
    # 900 million pixels by its header: the first chunk, behind eight bytes of signature.
    header = b"IHDR" + struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    (folder / "bomb.png").write_bytes(good[:8] + chunk + good[33:])
    Image.new("RGBA", (32, 32), (0, 0, 0, 0)).save(folder / "invisible.png")
    save_file({"features.0.weight": torch.zeros(5, 3, 3, 3)}, folder / "other.safetensors")
    (folder / "text.pth").write_text("hello")
    (folder / "locked").mkdir(mode=0o500)
    yield folder
    (folder / "locked").chmod(0o700)


@pytest.fixture
def desk(files, monkeypatch):
    """That folder, to work in."""
    monkeypatch.chdir(files)
    return files


def call(capsys, *words):
    """Run `styletransfer train` on the tiny preset; return its exit status and what it printed."""
    keys = {word.split("=")[0] for word in words}
    pictures = [f"{key}={key}.png" for key in ("content", "style") if key not in keys]
    status = 0
    try:
        main(["train", "experiment=tiny", *pictures, *words])
    except SystemExit as exit:
        status = exit.code
    return status, capsys.readouterr()


def errors_of(stderr):
    """The lines on standard error but for what a progress bar leaves."""
    lines = re.split(r"[\r\n]+", stderr)
    return [line for line in lines if line.strip() and not re.search(r"step/s|s/step", line)]


LARGE = {"content_weight": 0, "style_weight": 0}
REFUSED = [
    # Pictures.
    ({"content": "nowhere.png"}, r"nowhere\.png does not exist; check the path"),
    ({"style": "nowhere.png"}, r"nowhere\.png does not exist; check the path"),
    ({"style": ["style.png", "no.png"]}, r"no\.png does not exist; check the path"),
    ({"style": "folder.png"}, "style holds no picture; give at least one"),
    ({"content": "folder.png"}, r"folder\.png is a folder; name a picture file in it"),
    ({"content": ""}, r"\. is a folder"),
    ({"content": "empty.png"}, r"empty\.png is empty \(0 bytes\)"),
    ({"style": "truncated.png"}, r"truncated\.png is a damaged or truncated PNG file"),
    ({"content": "text.jpg"}, r"text\.jpg is no JPEG, PNG, .* picture, whatever its name"),
    ({"content": "bomb.png"}, r"bomb\.png has 30000 x 30000 = 900,000,000 pixels, more than"),
    ({"content": "invisible.png"}, r"invisible\.png is fully transparent"),
    ({"content": "1x1.png"}, r"1x1\.png shows 1 x 1 pixels; each side needs at least 8"),
    ({"style": "7x400.png"}, r"7x400\.png shows 7 x 400 pixels; .* at least 8"),
    ({"init": "mirror"}, r"unknown init 'mirror'|mirror does not exist"),
    ({"init": "text.jpg"}, r"text\.jpg is no JPEG"),
    (
        {"size": 12, "scales": 1, "objective": {"content_layers": ["relu5_1"]}},
        r"comes down to 12 x 9 pixels, too small for relu5_1: .* at least 16; raise",
    ),
    (
        {"size": 32, "scales": 3, "steps": 8, "objective": {"content_layers": ["relu5_1"]}},
        r"comes down to 8 x 6 pixels, too small for relu5_1: .* lower scales",
    ),
    # Choices.
    ({"color": "mine"}, r"unknown color 'mine'; choose style, content_palette, content_lum"),
    ({"objective.style_layers": ["relu1_1", "relu9_1"]}, r"unknown layer relu9_1; this network"),
    ({"loss_mode.name": "magic"}, r"unknown loss mode 'magic'; choose one of fake_back"),
    ({"optimizer.name": "sgd"}, r"unknown optimizer 'sgd'; choose lbfgs or adam"),
    ({"features.name": "resnet"}, r"unknown features 'resnet'; choose bundled, vgg19 or"),
    ({"features.pooling": "median"}, r"unknown features\.pooling 'median'"),
    ({"objective.normalization": "l1"}, r"unknown objective\.normalization 'l1'"),
    ({"device": "tpu"}, r"unknown device 'tpu'; choose auto, cpu, cuda, cuda:N, mps or"),
    ({"precision": "float8"}, r"unknown precision 'float8'; choose auto, bfloat16, fl"),
    # Numbers.
    ({"steps": 0}, r"steps=0 must be 1 or more"),
    ({"size": 0}, r"size=0 must be 1 or more"),
    ({"size": 2**31}, r"size=2147483648 must be at most 1048576 pixels"),
    ({"scales": -1}, r"scales=-1 must be 0 or more"),
    ({"seed": -1}, r"seed=-1 must be 0 or more"),
    ({"seed": 2**63}, r"seed=9.* is too large; it must be below 2\^63"),
    ({"color_strength": 2}, r"color_strength=2\.0 must be from 0 to 1"),
    ({"color_strength": float("nan")}, r"color_strength=nan must be from 0 to 1"),
    ({"objective.style_weight": -1}, r"objective\.style_weight=-1\.0 must be a finite"),
    ({"objective.tv_weight": float("inf")}, r"objective\.tv_weight=inf must be a finite"),
    ({"objective.style_layer_weights": [1, float("nan")]}, r"style_layer_weights=nan must"),
    ({"objective": LARGE}, r"all content and style weights are 0: nothing to optimise"),
    ({"optimizer.learning_rate": 0}, r"optimizer\.learning_rate=0\.0 must be above"),
    ({"optimizer.averaging": 1}, r"optimizer\.averaging=1\.0 must be 0 or more, below"),
    # Weights.
    ({"features.weights": "none.pth"}, r"no weights file at none\.pth; check feat"),
    (
        {"features.weights": "other.safetensors"},
        r"other\.safetensors holds weights of another network: missing features\.0\.bias, .* more;"
        r" misshapen: features\.0\.weight is \(5, 3, 3, 3\), not \(4, 3, 3, 3\)",
    ),
    ({"features.weights": "text.pth"}, r"text\.pth (holds|is not a readable)"),
    ({"features.weights": "style.png"}, r"must end in \.safetensors, \.pth or"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_what_every_face_refuses(settings, message, desk):
    given = {"content": "content.png", "style": "style.png", "experiment": "tiny"} | settings
    with pytest.raises(UserError, match=message) as refused:
        stylize(**given)
    assert "\n" not in str(refused.value)


LINES = [
    (["snapshot_every=-1"], r"snapshot_every=-1 must be 0 or more"),
    (["content=folder.png"], r"content=folder\.png: there is no picture in that folder"),
    (["style=folder.png"], r"folder\.png holds no picture; name a"),
    (["loss_mode=magic"], r"unknown loss_mode 'magic'; there are autograd_f"),
    (["experiment=none_such"], r"unknown experiment 'none_such'; there are .*tutorial_0_3"),
    (["stepps=3"], r"unknown key stepps; did you mean steps\?"),
    (["objective.style_wieght=3"], r"did you mean objective\.style_weight\?"),
    (["xyzzy=3"], r"unknown key xyzzy; see --help"),
    (["+objective.foo=3"], r"unknown key objective\.foo"),
    (["++stepps=3"], r"unknown key stepps; did you mean steps\?"),
    (["+features@more=vgg16"], r"unknown key features@more"),
    (["size=big"], r"size: Value 'big' of type 'str' could not be converted"),
    (["objective.style_layers=relu1_1"], r"objective\.style_layers: Invalid val"),
    (["objective.style_layers=[[relu1_1]]"], r"style_layers=.* must be a list of names"),
    (["features.weights=null"], r"features\.weights: .*not Optional"),
    (["size=99999999999999999999"], r"size=9+ is too large; it must be below 2\^63"),
    (["size=???"], r"size is missing; give size=VALUE"),
    (["tile=${nowhere}"], r"tile: Interpolation key 'nowhere' not found"),
    (["content"], r"cannot understand 'content'; write KEY=VALUE"),
    (["=3"], r"cannot understand '=3'; write KEY=VALUE"),
    (["device=a=b"], r"cannot understand 'device=a=b'; .*quotes"),
    (["device=a,b"], r"Ambiguous value for argument 'device=a,b'"),
    (["optimizer=null"], r"optimizer=null: give one name, or leave it out"),
    (["optimizer={name:adam}"], r"optimizer={name:adam}: give one name, or leave it out"),
    (["features=[vgg16]"], r"features=\[vgg16\]: give one name, or leave it out"),
    (["optimizer=3"], r"group override must be a string.*; see --help"),
    (["--frobnicate"], r"unknown flag --frobnicate; see --help"),
    (["--config-name=other"], r"unknown flag --config-name=other; see --help"),
    (["--cfg"], r"--cfg: expected one argument; see --help"),
    (["--config-dir", "nowhere"], r"nowhere.*not found"),
    (["hydra.job.name=x/y"], r"hydra\.job\.name=x/y: a job's name becomes a"),
    (["-m", "steps=1,2", "output=out.png"], r"all jobs of a sweep would write out\.png"),
    (["-m", "seed=1,2", "output='a,b.png'"], r"all jobs of a sweep would write 'a,b\.png'"),
    (["output=out.gif"], r"cannot write out\.gif: unknown extension '\.gif'; use \.png"),
    (["output=folder.png"], r"cannot write folder\.png: it is a folder"),
    (["output=text.jpg/out.png"], r"cannot write text\.jpg/out\.png"),
    (["hydra.run.dir=text.jpg/run"], r"cannot write text\.jpg.*run"),
    (["output=content.png"], r"output=content\.png would overwrite"),
    (["init=style.png", "style=7x400.png", "output=style.png"], r"would overwrite the init pic"),
]


@pytest.mark.parametrize(("words", "message"), LINES)
def test_what_a_command_line_is_refused_for(words, message, desk, capsys):
    before = sorted(desk.rglob("*"))
    status, printed = call(capsys, *words)
    (line,) = errors_of(printed.err)
    assert re.match("error: .*" + message, line), line
    assert (status, printed.out) == (1, "")
    assert sorted(desk.rglob("*")) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu(desk):
    message = "device=cuda:3 is not here: 0 CUDA devices were found; choose"
    with pytest.raises(UserError, match=message):
        stylize("content.png", "style.png", experiment="tiny", device="cuda:3")


@pytest.mark.cuda
def test_no_such_gpu(desk):
    with pytest.raises(UserError, match="device=cuda:99 is not here"):
        stylize("content.png", "style.png", experiment="tiny", device="cuda:99")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("word", ["output=locked/out.png", "hydra.run.dir=locked/run"])
def test_unwritable_folder(word, desk, capsys):
    status, printed = call(capsys, word)
    (line,) = errors_of(printed.err)
    assert re.match(r"error: cannot write locked/.*Permission denied", line)
    assert status == 1


def test_full_disk_at_the_end(desk, tmp_path, monkeypatch, capsys):
    """Nothing half-written, and a picture that was there before is left as it was."""
    output, real = tmp_path / "out.png", Path.write_bytes
    output.write_bytes(b"older")

    def full(self, data):
        real(self, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    status, printed = call(capsys, f"output={output}", f"hydra.run.dir={tmp_path}/run")
    (line,) = errors_of(printed.err)
    assert line.startswith(f"error: cannot write {output}: No space left on device")
    assert (status, output.read_bytes()) == (1, b"older")
    made = {path.name for path in (tmp_path / "run").iterdir()} - {".hydra", "train.log"}
    assert made == {"metrics.jsonl", "run.json"}


def test_a_run_that_gives_up_prints_where_the_picture_is(desk, tmp_path, capsys):
    output = tmp_path / "out.png"
    words = [f"output={output}", "objective.content_weight=1e300", f"hydra.run.dir={tmp_path}/run"]
    status, printed = call(capsys, *words)
    (line,) = errors_of(printed.err)
    assert re.match("error: the loss .*finite", line)
    assert (status, printed.out.splitlines()[-1]) == (1, str(output))
    assert "stopped early" in printed.out
    assert output.exists()


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (MemoryError(), 1, r"error: .*memory.*smaller size"),
        (SystemError("error return without exception set"), 1, r"error: .*memory.*smaller size"),
        (torch.OutOfMemoryError("CUDA out of memory."), 1, r"error: .*memory.*smaller size"),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you"), 1, r".*memory.*smaller size"),
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (OSError(5, "Input/output error", "disk.png"), 1, "error: disk.png: Input/output error"),
    ],
)
def test_what_ends_a_run_before_there_is_a_picture(error, status, line, desk, monkeypatch, capsys):
    def failing(config, **given):
        raise error

    monkeypatch.setattr(paint_module, "prepare", failing)
    ended, printed = call(capsys)
    (said,) = errors_of(printed.err)
    assert re.fullmatch(line, said)
    assert ended == status


@pytest.mark.parametrize("mistake", [ZeroDivisionError(), OSError(9, "Bad file descriptor")])
def test_a_mistake_of_ours_keeps_its_traceback(mistake, desk, monkeypatch, capsys):
    def broken(config, **given):
        raise mistake

    monkeypatch.setattr(paint_module, "prepare", broken)
    with pytest.raises(type(mistake)):
        call(capsys)


def test_config_errors_keep_their_traceback_on_demand(desk, monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(Exception, match="stepps"):
        call(capsys, "stepps=3")


def test_bundled_network_missing(desk, monkeypatch):
    monkeypatch.setattr(weights, "BUNDLED", desk / "bundled.safetensors")
    with pytest.raises(UserError, match=r"bundled\.safetensors is missing or damaged; install"):
        stylize("content.png", "style.png", experiment="tiny", features="bundled")


def test_download_unreachable(desk, monkeypatch):
    def unreachable(name):
        raise UserError(f"{name}'s weights cannot be downloaded (no route); use features=bundled")

    monkeypatch.setattr(vgg, "pretrained_state", unreachable)
    given = {"experiment": "tiny", "features.weights": "pretrained"}
    with pytest.raises(UserError, match="vgg19's weights cannot be downloaded"):
        stylize("content.png", "style.png", **given)


def test_errors_and_warnings_are_one_line(capsys):
    def complain():
        warnings.warn("an odd\nprofile", stacklevel=1)
        raise UserError("two\nlines\tand  spaces")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(SystemExit), one_line_errors():
            complain()
    assert capsys.readouterr().err == "note: an odd profile\nerror: two lines and spaces\n"


@pytest.mark.slow
def test_bad_input_in_a_real_process(desk):
    """Nothing of this is an artefact of running in one process with pytest."""
    before = sorted(desk.rglob("*"))
    done = run_script("train", "content=text.jpg", "style=style.png", "experiment=tiny", cwd=desk)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert re.match(r"error: text\.jpg is no JPEG", line)
    assert sorted(desk.rglob("*")) == before
