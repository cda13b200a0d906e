"""Bad input: one clear line on standard error, a non-zero exit, no incomplete files.

Errors that a Python call can have as well are tested where they are raised.
"""

import os
import re
import warnings

import pytest
from helpers import call, lines_of, record_of, refusal

from styletransfer import UserError
from styletransfer.cli.errors import one_line_errors

pytestmark = pytest.mark.usefixtures("tiny_vgg")


def train(capsys, *words):
    """Run `train` on the tiny preset; return its exit status, its output, and its one error."""
    keys = {word.split("=")[0] for word in words}
    pictures = [f"{key}={key}.png" for key in ("content", "style") if key not in keys]
    status, printed = call(capsys, "train", "experiment=tiny", *pictures, *words)
    (line,) = lines_of(printed.err)
    return status, printed.out, line


LINES = [
    (["stop_after=-1"], r"stop_after=-1 must be 0 or more"),
    (["style=folder.png"], r"folder\.png holds no picture; name a"),
    (["experiment=none_such"], r"unknown experiment 'none_such'; there are .*tutorial_0_3"),
    (["stepps=3"], r"unknown key stepps; did you mean steps\?"),
    (["tv_weight=1"], r"unknown key tv_weight; did you mean objective\.tv_weight\?"),
    (["style=https://a.b/c.png"], r"https://a\.b/c\.png is an address, not a file; download"),
    (["objective={content_weight:{}}"], r"objective\.content_weight: Value .{}. of type"),
    (["content="], r"a file name is empty; write KEY=FILE, or leave the key out"),
    (["size=???"], r"size is missing; give size=VALUE"),
    (["content"], r"cannot understand 'content'; write KEY=VALUE"),
    (["device=a,b"], r"Ambiguous value for argument 'device=a,b'"),
    (["optimizer=null"], r"optimizer=null: give one name, or leave it out"),
    (["--frobnicate"], r"unknown flag --frobnicate; see --help"),
    (["--config-dir", "do${x}"], r"--config-dir do\$\{x\}: there is no such folder"),
    (["-content_image", "x"], r"unknown flag -content_image; .* take no dash: content=x$"),
    (["--info"], r"unknown flag --info; see --help$"),
    (["--hydra-help"], r"unknown flag --hydra-help; see --help$"),
    (["--config-name", "x"], r"unknown flag --config-name; see --help$"),
    (["--version"], r"--version stands alone: styletransfer --version$"),
    (["a.jpg", "b.jpg"], r"cannot understand 'a\.jpg'; .*: content=a\.jpg style=b\.jpg$"),
    (["a b.jpg"], r"cannot understand 'a b\.jpg'; .*: 'content=a b\.jpg'$"),
    (["--content", "a b.jpg"], r"unknown flag --content; .* take no dash: 'content=a b\.jpg'$"),
    (["size.x=1"], r"unknown key size\.x; did you mean size\?"),
    (["~size.x"], r"unknown key size\.x; did you mean size\?"),
    (["-m", "size=choice(16,32),range(1,3)"], r"size=choice\(.*: choice\(\.\.\.\) or range"),
    (["init", "=", "a b"], r"KEY=VALUE is one word, without spaces around =: 'init=a b'$"),
    (["init=", "noise"], r"KEY=VALUE is one word, .*: init=noise$"),
    (["init", "=noise"], r"KEY=VALUE is one word, .*: init=noise$"),
    (["~style_detail"], r"~style_detail: no key can be taken away; leave it out, or give style_"),
    (["~experiment"], r"~experiment: no key can be taken away; leave it out"),
    (["hydra.verbose=null"], r"Hydra cannot use one of its own settings; check the words"),
    (["output=folder.png"], r"cannot write folder\.png: it is a folder; add a file name"),
    (["output=http://a.b/c.png"], r"http://a\.b/c\.png is an address, .*; name a file on this"),
    (["optimizer.preconditioner=9e18"], r"optimizer\.preconditioner=9e\+18 must be .* at most 8"),
    (["hydra.job.chdir=true"], r"hydra\.job\.chdir=true would change what file names mean"),
    (["output=out.gif"], r"cannot write out\.gif: unknown extension '\.gif'; use \.png"),
]


@pytest.mark.parametrize(("words", "message"), LINES)
def test_what_a_command_line_is_refused_for(words, message, desk, capsys):
    (desk / "folder.png").mkdir()
    before = sorted(desk.rglob("*"))
    status, printed, line = train(capsys, *words)
    assert re.match("error: .*" + message, line), line
    assert (status, printed) == (1, "")
    assert sorted(desk.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["init=a b.jpg"], r".*name one first: styletransfer train 'init=a b\.jpg'$"),
        (["train", "content=a.jpg", "b.jpg"], r".*; say what it is: style=b\.jpg$"),
        (["gradcheck", "experiment=tiny"], "this command takes no experiment=; leave it out"),
        (["apply", "film.mp4"], r"cannot understand 'film\.mp4'; say what it is: input=film\.mp4$"),
        (["export", "any.onnx"], r".*; say what it is: output=any\.onnx$"),
        (["info", "picture.x=1"], r"unknown key picture\.x; did you mean picture\?"),
    ],
)
def test_what_other_commands_advise(words, message, desk, capsys):
    assert re.match("error: " + message, refusal(capsys, *words))


def test_a_run_that_gives_up_prints_where_the_picture_is(desk, tmp_path, capsys):
    output = tmp_path / "out.png"
    words = [f"output={output}", "objective.content_weight=1e300", f"hydra.run.dir={tmp_path}/run"]
    status, printed, line = train(capsys, *words)
    assert re.match("error: the loss .*finite", line)
    assert (status, printed.splitlines()[-1]) == (1, str(output))
    assert "stopped early" in printed
    assert output.exists()
    assert record_of(tmp_path / "run")["status"] == "gave up"
    output.write_bytes(b"an earlier picture")
    printed = train(capsys, *words[:-1], f"hydra.run.dir={tmp_path}/again")[1]
    assert printed.splitlines()[-1] == str(tmp_path / "again" / "pastiche.png")
    assert output.read_bytes() == b"an earlier picture"


@pytest.mark.parametrize("command", ["film", "train_network"])
def test_a_folder_whose_name_is_too_long_is_told(command, desk, capsys):
    names = [f"{letter * 120}.png" for letter in "abc"]
    for name in names:
        (desk / "style.png").with_name(name).write_bytes((desk / "style.png").read_bytes())
    content = ["content=content.png"] if command == "film" else []
    line = refusal(capsys, command, *content, f"style=[{','.join(names)}]")
    assert re.match(r"error: cannot write outputs/.*: File name too long; choose hydra\.run", line)


@pytest.mark.parametrize("words", [["train"], ["compare"], ["train", "-m", "seed=1,2"]])
def test_a_folder_that_takes_no_file_is_told(words, desk, capsys):
    (desk / "outputs").write_text("no folder")
    line = refusal(capsys, *words, "content=content.png", "style=style.png")
    assert re.match(r"error: cannot write .*outputs.*; choose .*hydra\.run\.dir=PATH", line)


@pytest.mark.slow
def test_what_ends_a_run_before_there_is_a_picture(desk, monkeypatch, capsys):
    for error, status, line in (
        (MemoryError(), 1, r"error: .*memory.*smaller size"),
        (ImportError("a.so: failed to map segment"), 1, "error: there is not .*to load PyTorch"),
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (OSError(5, "Input/output error", "disk.png"), 1, "error: disk.png: Input/output error"),
        (OSError(28, "No space left"), 1, "error: cannot write standard output: No space left"),
    ):

        def failing(config, error=error, **given):
            raise error

        monkeypatch.setattr("styletransfer.job.prepare.prepare", failing)
        ended, _, said = train(capsys)
        assert (ended, bool(re.fullmatch(line, said))) == (status, True), said
    # A bug of the package itself keeps its traceback.
    monkeypatch.setattr("styletransfer.job.prepare.prepare", lambda config, **given: 1 / 0)
    status, printed = call(capsys, "train", "content=content.png", "style=style.png")
    assert (status, printed.err.splitlines()[-1]) == (1, "ZeroDivisionError: division by zero")


def test_a_folder_that_is_gone_is_told(here, capsys):
    (here / "gone").mkdir()
    os.chdir(here / "gone")
    (here / "gone").rmdir()
    for words in (("train",), ("info", "a.png")):
        assert "was started in is gone; go to another" in refusal(capsys, *words)


def test_errors_and_warnings_are_one_line(capsys):
    def complain():
        warnings.warn("an odd\nprofile", stacklevel=1)
        raise UserError("two\nlines\tand  spaces")

    always = warnings.catch_warnings(action="always")
    with always, pytest.raises(SystemExit), one_line_errors():
        complain()
    assert capsys.readouterr().err == "note: an odd profile\nerror: two lines and spaces\n"
