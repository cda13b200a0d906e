"""The console command: its commands, file names, help, folders, and exit status."""

import pickle
import re
import sys
import unicodedata
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from helpers import ROOT, call, picture, process, refusal
from omegaconf import OmegaConf

from styletransfer import __version__
from styletransfer.cli.arguments import parse
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.settings import ASSETS, TrainConfig
from styletransfer.settings.compose import compose, settings_of
from styletransfer.settings.help import meanings
from styletransfer.settings.registry import commands
from styletransfer.settings.schemas import expanded, keys, keys_marked
from styletransfer.settings.values import for_hydra
from styletransfer.system.files import new_folder
from styletransfer.train import train

pytestmark = pytest.mark.usefixtures("tiny_vgg")


def replace_train(monkeypatch, function):
    """Make the command `train` call `function(settings, folder)`."""
    monkeypatch.setattr(commands()["train"], "code", function)


def test_the_overview_has_one_line_for_each_command(capsys):
    assert call(capsys, "--version") == (0, (f"styletransfer {__version__}\n", ""))
    status, printed = call(capsys, "--help")
    assert (status, printed.err) == (0, "")
    lines = printed.out.splitlines()
    for name, command in commands().items():
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.endswith(command.summary)
    for name, message in (
        ("trian", "error: unknown command 'trian'; did you mean train?"),
        ("xyzzy", f"error: unknown command 'xyzzy'; there are {', '.join(commands())}"),
        ("size=3", "error: 'size=3' is no command; name one first: styletransfer train size=3"),
    ):
        assert refusal(capsys, name).startswith(message)


def test_every_command_has_a_script():
    for name, command in commands().items():
        script = (ROOT / "scripts" / f"{name}.py").read_text()
        assert f"from {command.module} import {name}" in script
        assert f"run_command({name})" in script
        assert pickle.loads(pickle.dumps(command)) is command  # for the jobs of a sweep


@pytest.mark.slow
def test_any_file_name_works_as_typed_alone_and_in_brackets():
    names = [
        *("été (1).png", "a=b.png", "a,b.png", "[x].png", "{x}.png", "it's.png", 'say "hi".png'),
        *("two  spaces .png", "$HOME.png", "${now:%H}.png", "a${b}.png", "\\${x}.png"),
        *("back\\slash.png", "#%&;:@!?*~.png", "null.png", "-m.png", "choice(a,b).png", "日本.png"),
        *("'a'b'.png", "a\nb.png"),
    ]
    keys = ("content", "style", "style_detail", "protect", "output", "init", "content_regions")
    for first in range(0, len(names), len(keys)):
        meant = dict(zip(keys, names[first:], strict=False))
        words = [for_hydra(f"{key}={name}", TrainConfig) for key, name in meant.items()]
        composed = OmegaConf.to_object(compose(train, words))
        assert {key: getattr(composed, key) for key in meant} == meant
    for typed, names in (
        ("[c.jpg,'a,b.jpg', d e.jpg ]", ["c.jpg", "a,b.jpg", "d e.jpg"]),
        ("[\"it's,so\",'],[',it's.jpg]", ["it's,so", "],[", "it's.jpg"]),
        ("[${x},[y]", ["${x}", "[y"]),
        ("'a,b.jpg'", "a,b.jpg"),
    ):
        word = for_hydra(f"style={typed}", TrainConfig)
        assert OmegaConf.to_object(compose(train, [word])).style == names


def test_commas_separate_values_in_a_sweep_alone():
    plain = ("output=null", "content='a b.png'", 'content="a,b.png"', "size=a b", "content=a/b.png")
    for word in (*plain, "content"):
        assert for_hydra(word, TrainConfig) == word
    assert for_hydra("hydra.run.dir=a,b", TrainConfig) == "hydra.run.dir='a,b'"
    word = "hydra.run.dir=${now:%H}"
    assert for_hydra(word, TrainConfig) == word
    for typed, read in (
        ("content=a (1).png,b.png", "content='a (1).png',b.png"),
        ("content='a,b.png', c.png", "content='a,b.png',c.png"),
        ("content=c.png,'a,b.png'", "content=c.png,'a,b.png'"),
        ("style=[a,'b,c'],d", "style=[a,'b,c'],d"),
    ):
        assert for_hydra(typed, TrainConfig, sweep=True) == read


def test_names_mean_home_and_the_bundled_pictures(desk, monkeypatch):
    monkeypatch.setenv("HOME", str(desk))
    config = settings_of(compose(train, ["content='~/a.png'", "style=['~/b.png']"]))
    assert (config.content, config.style) == (f"{desk}/a.png", [f"{desk}/b.png"])
    coffee = str(ASSETS / "content" / "coffee.jpg")
    for name in ("content/coffee.jpg", "./content/coffee.jpg", "assets/content/coffee.jpg"):
        assert expanded(name) == coffee
        assert expanded(name, written=True) == name
    words = ["content='content/coffee.jpg'", "style=['style/oil.jpg']", "output='style/oil.jpg'"]
    config = settings_of(compose(train, words))
    oil = str(ASSETS / "style" / "oil.jpg")
    assert (config.content, config.style, config.output) == (coffee, [oil], "style/oil.jpg")
    for name in ("content", "style", "assets", "../content/coffee.jpg", "/content/coffee.jpg"):
        assert expanded(name) == name  # `init=content` is a word
    Path("content").mkdir()
    images.write("content/coffee.jpg", picture(0, 24, 32))
    assert expanded("content/coffee.jpg") == "content/coffee.jpg"
    assert expanded("content") == "content"
    (word,) = parse(["content=assets/content"], TrainConfig).overrides
    assert word.count(",") == len([*(ASSETS / "content").glob("*.jpg")]) - 1 > 0


@pytest.mark.slow
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_are_found_in_either_form(form, desk, capsys):
    """An accent is one character (NFC), or a letter and a mark (NFD)."""
    other = {"NFC": "NFD", "NFD": "NFC"}[form]
    stored = unicodedata.normalize(form, "B\u00fccher/caf\u00e9.png")
    typed = unicodedata.normalize(other, stored)
    Path(stored).parent.mkdir()
    Path("content.png").rename(stored)
    for name in (typed, unicodedata.normalize(form, typed[:6]) + typed[6:]):
        assert Path(expanded(name)).samefile(stored)
    assert Path(expanded(f"{Path(typed).parent}/new.png", written=True)).parent.exists()
    words = [f"content={typed}", "style=style.png", "experiment=tiny", "dry_run=true"]
    assert call(capsys, "train", *words)[0] == 0
    folder = Path(stored).parent / "experiment"
    folder.mkdir()
    (folder / "mine.yaml").write_text("# @package _global_\nsize: 77\n")
    shown = call(capsys, "train", "-cd", str(Path(typed).parent), "experiment=mine", "-c", "job")
    assert "size: 77" in shown[1].out


@pytest.mark.slow
def test_help_says_what_each_key_means(capsys):
    for name, command in commands().items():
        status, printed = call(capsys, name, "--help")
        assert (status, printed.err) == (0, "")
        lines, schema = printed.out.splitlines(), command.schema
        texts = meanings(schema)
        assert max(map(len, lines)) <= 100
        for key, field in keys(schema):
            if not is_dataclass(field.type):
                assert len(texts[key]) > 15, key
                assert f"\n{key}=" in printed.out, (name, key)
        usage = ["styletransfer", name, *map(str.upper, keys_marked(schema, "positional"))]
        assert lines[:2] == [" ".join([*usage, "KEY=VALUE ..."]), command.summary]


def test_help_shows_defaults_presets_and_meanings(capsys):
    text = call(capsys, "train", "--help", "size=64", "experiment=gatys_2016")[1].out
    for part in ("size=64 ", "steps=1000 ", "content=content/coffee.jpg ", "experiment=gatys_2016"):
        assert f"\n{part}" in text
    assert "Longer side of the pastiche in pixels" in text
    presets = "bold, classic, faithful, gatys_2016, painted, painterly, paired, texture, tiny,"
    assert presets in " ".join(text.split())
    assert "\nobjective.content_layers=[relu4_2] " in text


def test_help_needs_no_torch_and_the_overview_no_hydra():
    code = (
        "import sys; from styletransfer.cli import main; main(['--help']); print(*sys.modules);"
        "main(['train', '--help']); print(*sys.modules)"
    )
    done = process(sys.executable, "-c", code, timeout=300)
    overview, helped = (set(line.split()) for line in done.stdout.splitlines() if "sys" in line)
    assert not {"torch", "hydra", "omegaconf", "numpy"} & overview
    assert not {"torch", "torchvision", "tqdm", "numpy"} & helped


@pytest.mark.slow
def test_the_default_job_needs_no_torchvision_and_no_internet(desk):
    """torchvision takes a second or two to import. The proxy of this process does not exist."""
    code = (
        "import sys; from styletransfer.cli import main;"
        "main(['train', 'size=48', 'steps=2', 'device=cpu', 'output=new.png']); print(*sys.modules)"
    )
    offline = {"https_proxy": "http://127.0.0.1:9", "PATH": "", "HOME": str(desk)}
    done = process(sys.executable, "-c", code, env=offline, timeout=300)
    assert images.read("new.png").size == (32, 48)
    modules = set(done.stdout.splitlines()[-1].split())
    assert "torch" in modules
    assert not {"torchvision", "torch._dynamo", "sympy"} & modules


@pytest.mark.slow
def test_presets_of_ones_own_and_broken_ones_in_one_line(desk, capsys):
    Path("my/experiment").mkdir(parents=True)
    Path("my/experiment/mine.yaml").write_text("# @package _global_\nsize: 77\n")
    text = call(capsys, "train", "--config-dir", "my", "experiment=mine", "--help")[1].out
    assert "\nsize=77 " in text
    assert "gatys_2016, mine, painted, painterly, paired, texture" in " ".join(text.split())
    for preset, message in (
        ("\tsize: 3\n", r"cannot start any token .*mine\.yaml\", line 1"),
        ("3\n", "Invalid loaded object type: int"),
        ("# @package _global_\nsise: 3\n", "Key 'sise' not in 'TrainConfig'"),
        ("defaults: [mine]\n", "a preset names itself in its defaults list"),
        ("# \xe9\n", r"/mine\.yaml is no text in UTF-8; save it as UTF-8"),
        ("", r"Key 'experiment' not in .*; the first line of a preset is # @package _global_"),
        ("\xef\xbb\xbf# @package _global_\nsize: 7\n", "Key 'experi.*, with no byte order mark"),
        ("# @package _global_\nhydra: null\n", "Hydra cannot .* check .* hydra: in presets"),
    ):
        Path("my/experiment/mine.yaml").write_bytes(preset.encode("latin-1"))
        line = refusal(capsys, "train", "--config-dir", "my", "experiment=mine")
        assert re.match(f"error: .*{message}", line)


@pytest.mark.slow
def test_a_preset_of_nested_aliases_is_refused(desk, capsys):
    """Its 300 bytes stand for a billion values. A small one may have aliases."""
    nine = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
    Path("my/experiment").mkdir(parents=True)
    preset, head = Path("my/experiment/mine.yaml"), "# @package _global_\n"
    words = ["train", "--config-dir", "my", "experiment=mine"]
    for text in (f"a0: &a0 1\n{nine}", "a: &a [*a]\n", f"a: {'[' * 9999}", "#" * 2**20):
        preset.write_text(head + text)
        assert "my/experiment/mine.yaml is too large or too deep" in refusal(capsys, *words)
    preset.write_text(f"{head}steps: &few 3\nscales: *few\n")
    assert "\nscales: 3\n" in call(capsys, *words, "--cfg", "job")[1].out


def test_runs_of_one_second_do_not_share_a_folder(tmp_path):
    made = [new_folder(str(tmp_path / "a/b")) for _ in range(3)]
    assert made == [str(tmp_path / name) for name in ("a/b", "a/b-2", "a/b-3")]
    assert all(Path(path).is_dir() for path in made)


@pytest.mark.slow
def test_only_what_a_run_has_made_itself_is_removed(desk, capsys, monkeypatch):
    """--cfg, which prints the config, writes no file."""
    status, printed = call(capsys, "train", "--cfg", "all", "--resolve", "size=64")
    assert (status, "\nsize: 64\n" in printed.out) == (0, True)
    assert sorted(path.name for path in desk.iterdir()) == ["content.png", "style.png"]
    Path("mine/.hydra").mkdir(parents=True)
    Path("mine/train.log").touch()
    assert call(capsys, "train", "size=0", "hydra.run.dir=mine")[0] == 1
    assert Path("mine/train.log").exists()

    def failing(config, folder):
        (folder / "half").touch()
        raise UserError("no more")

    replace_train(monkeypatch, failing)
    assert call(capsys, "train")[0] == 1
    (half,) = Path("outputs").rglob("half")
    assert half.exists()


def test_a_closed_pipe_ends_a_command_without_a_traceback():
    shown = f"{sys.executable} -m styletransfer --help"
    done = process("bash", "-c", f"({shown}; echo $? >&2) | true", cwd=ROOT, timeout=300)
    assert done.stderr in ("0\n", "141\n")
    for command, status in ((f"{shown} >&-", 0), (f"{shown.replace('--help', 'none')} 2>&-", 1)):
        done = process("bash", "-c", command, cwd=ROOT, timeout=300)
        assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
