"""Every file in configs/ composes with the command that its comment gives."""

import math
import re
import shlex
from pathlib import Path

import pytest
import torch
from helpers import ROOT, check_error, composed
from omegaconf import OmegaConf

from styletransfer.losses import mean_square
from styletransfer.losses.moments import gram_matrix
from styletransfer.objective import Criterion
from styletransfer.settings import ObjectiveConfig, TrainConfig
from styletransfer.settings.changes import with_values
from styletransfer.settings.compose import compose
from styletransfer.settings.registry import Command, commands
from styletransfer.settings.schemas import check_values, choices, keys

FILES = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.mark.slow
def test_every_file_composes_by_the_command_it_gives():
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        # The first two comment lines, without Hydra's "@package" line, which must be the first.
        first, second = [line for line in lines[:3] if line != "# @package _global_"][:2]
        assert re.match(r"# \S.{20,}", first), "the first line says what the file is for"
        command = re.search(r"python (scripts/\w+\.py)(.*)", f"{first}\n{second}")
        assert command, "one of the first two lines gives the command"
        config = compose(
            commands()[Path(command[1]).stem], shlex.split(command[2]), with_hydra=True
        )
        group = path.parent.relative_to(ROOT / "configs").as_posix()
        choices = config.hydra.runtime.choices
        assert (config.hydra.job.config_name if group == "." else choices[group]) == path.stem
        sweep = OmegaConf.to_container(config.hydra.sweep)["dir"]
        assert sweep.startswith("${new_folder:outputs/sweep/")
        if group in ("features", "loss_mode", "optimizer"):
            assert config[group].name == path.stem


def test_the_default_look_is_what_configs_train_yaml_shows():
    objective = ObjectiveConfig(0.18, 1.0, match_weight=0.5, style_loss="gram")
    look = TrainConfig(steps=60, color="style_palette", objective=objective)
    assert composed("train") == composed("train", "experiment=painted") == look
    shown = OmegaConf.load(ROOT / "configs/train.yaml")
    assert {"size", "steps", "color", "objective"} < {*shown}
    of_look = "content_weight match_weight style_weight content_layers match_layers style_layers"
    assert {*of_look.split()} < {*shown.objective}
    assert composed("train", "experiment=classic") == TrainConfig()


@pytest.mark.slow
def test_the_tutorials_minimise_one_objective():
    """The tutorials differ in how they make the gradient, and in the network's preprocessing."""
    old, new = (composed("train", f"experiment=tutorial_{number}") for number in ("0_3", "0_4"))
    assert old.objective == new.objective
    criterion = Criterion.of(old.objective)
    layers = ["conv1_1", "conv1_2", "conv2_1", "conv2_2", "conv3_1"]
    assert criterion.contents == {"conv2_2": 1.0}
    assert criterion.styles == dict.fromkeys(layers, 1000.0**2)
    assert (old.loss_mode.name, new.loss_mode.name) == ("fake_backward", "loss_attribute")
    assert (old.features.preprocessing, new.features.preprocessing) == ("none", "imagenet")
    old.loss_mode, old.features.preprocessing = new.loss_mode, new.features.preprocessing
    assert old == new


def test_gatys_weights_are_the_papers_equations():
    """Sums as in equations 1 and 4 equal our weighted means, with the preset's channel counts."""
    criterion = Criterion.of(composed("train", "experiment=gatys_2016").objective)
    generator = torch.Generator().manual_seed(0)
    for (layer, weight), n in zip(criterion.styles.items(), (64, 128, 256, 512, 512), strict=True):
        f, s = torch.randn(2, 1, n, 3, 4, generator=generator, dtype=torch.float64)
        m = 3 * 4
        g, a = (x[0].flatten(1) @ x[0].flatten(1).T for x in (f, s))
        paper = ((g - a) ** 2).sum() / (4 * n**2 * m**2) / 5
        ours = weight * mean_square(gram_matrix(f) - gram_matrix(s))
        assert torch.allclose(ours, paper, rtol=1e-12), layer
    # The bundled content picture has 64 x 42 positions at relu4_2.
    f, p = torch.randn(2, 1, 512, 42, 64, generator=generator, dtype=torch.float64)
    paper = 1e-3 * ((f - p) ** 2).sum() / 2
    assert torch.allclose(criterion.contents["relu4_2"] * mean_square(f - p), paper, rtol=1e-12)


def test_numbers_outside_of_their_intervals_are_refused():
    for schema in (known.schema for known in commands().values()):
        for key, declared in keys(schema):
            interval = declared.metadata.get("interval", "[-inf, inf]")
            for end, step in zip(interval[1:-1].split(", "), (-1, 1), strict=True):
                if math.isfinite(outside := float(end) + step):
                    settings, (group, _, name) = schema(), key.rpartition(".")
                    owner = getattr(settings, group) if group else settings
                    is_list = declared.type == list[float]
                    setattr(owner, name, [outside] if is_list else outside)
                    check_error(f"^{key}={outside} must be ", check_values, settings)


def test_numbers_and_words_are_checked_as_declared():
    for key, wrong, limits in (
        ("optimizer.history", [0], "1 or more"),
        ("optimizer.learning_rate", [0.0, 1e308], "above 0 and at most 1e6"),
        ("optimizer.learning_rate", [math.nan], "finite"),
        ("optimizer.plateau", [1.0, -0.1], "0 or more and below 1"),
        ("style_scale", [[1.0, 9]], "0.05 or more and at most 8"),
    ):
        for value in wrong:
            number = value[-1] if isinstance(value, list) else value
            message = re.escape(f"{key}={number} must be {limits}")
            check_error(f"^{message}$", with_values, TrainConfig(), {key: value})
    check_error("^seed=.* is too large", with_values, TrainConfig(), {"seed": 2**63})
    message = "^unknown features.pooling 'min'; choose max, average$"
    check_error(message, with_values, TrainConfig(), {"features.pooling": "min"})
    largest = {"seed": 2**63 - 1, "optimizer.learning_rate": 1e6, "objective.match_painted": 1}
    assert with_values(TrainConfig(), largest).seed == 2**63 - 1


def test_hidden_files_are_no_presets(tmp_path):
    folder = tmp_path / "experiment"
    folder.mkdir()
    for name in ("mine.yaml", "._mine.yaml"):
        (folder / name).touch()
    assert set(choices("experiment", tmp_path)) - set(choices("experiment")) == {"mine"}


def test_a_config_may_extend_another_commands(tmp_path):
    def longer(config: TrainConfig, folder: Path) -> None:
        """Paint with more steps."""

    (tmp_path / "longer.yaml").write_text("defaults: [film, _self_]\nsize: 777\n")
    assert compose(Command(longer, folder=tmp_path)).size == 777
