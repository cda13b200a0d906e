import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from helpers import MODES, ROOT, composed

from styletransfer.commands.explain.run import explain
from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.settings import compose

SMALL = [
    "features=vgg19",
    "features.weights=random",
    "size=24",
    "device=cpu",
    "precision=float32",
    "objective.style_layers=[relu1_1,relu2_1]",
    "objective.content_layers=[relu2_1]",
]


def small(*overrides: str) -> TrainConfig:
    config = composed("explain", *SMALL, *overrides)
    assert isinstance(config, TrainConfig)
    return config


def test_explain_takes_the_same_config_as_train() -> None:
    assert compose("explain") == compose("train")


@pytest.mark.parametrize("mode", MODES)
def test_explain_writes_page_and_figures(mode: str, tmp_path: Path) -> None:
    explanation = explain(small(f"loss_mode={mode}"), tmp_path)
    assert explanation.page == tmp_path / "explain.html"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "example.svg",
        "explain.html",
        "map_autograd_function.svg",
        "map_fake_backward.svg",
        "map_loss_attribute.svg",
    ]
    for figure in tmp_path.glob("*.svg"):
        ElementTree.fromstring(figure.read_text(encoding="utf-8"))
    assert explanation.setting == "vgg19, 24 x 16 pixels, float32, cpu"
    assert len(explanation.trees()) == 3
    others = [name for name in MODES if name != mode]
    assert [one.mode for one in explanation.studies] == [mode, *others]
    page = explanation.page.read_text(encoding="utf-8")
    assert page.index(f'<section class="mode" id="{mode}"') < page.index(f'id="{others[0]}"')


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss_mode.name=magic", "unknown loss mode 'magic'"),
        ("objective.style_layers=[relu9_1]", "relu9_1"),
        ("content=nowhere.jpg", "nowhere.jpg"),
    ],
)
def test_bad_input_writes_nothing(override: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        explain(small(override), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_script_as_a_person_runs_it(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/explain.py", *SMALL, f"hydra.run.dir={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(tmp_path / "explain.html")
    assert (tmp_path / "explain.html").stat().st_size > 10_000
    assert all(mode in done.stdout for mode in MODES)
    assert "In the losses: Yes" in done.stdout


def test_script_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/explain.py", "szie=32", f"hydra.run.dir={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: unknown key szie; did you mean size?\n"
