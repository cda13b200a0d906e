"""Settings from keys and values, changes during a run, and settings as a command line."""

import shlex
from pathlib import Path

import numpy as np
from helpers import check_error, composed

from styletransfer.cli.arguments import parse
from styletransfer.settings import ObjectiveConfig, TrainConfig
from styletransfer.settings.changes import changed, with_values
from styletransfer.settings.values import command_line, override


def test_values_in_every_spelling():
    values = {
        "objective": {"content_weight": 3, "style_layers": ("relu1_1",)},
        "objective.tv_weight": np.float32(0.5),
        "optimizer": "adam",
        "optimizer.averaging": 0.5,
        "style_weights": np.array([1.0, 2.0]),
        "style": [Path("a${b}.jpg"), "~x.jpg"],
        "region_styles": {"red": np.int64(2)},
        "steps": np.int64(4),
    }
    config = TrainConfig(region_styles={"blue": 1}, size=64)
    made = with_values(config, values)
    assert made.objective == ObjectiveConfig(3.0, tv_weight=0.5, style_layers=["relu1_1"])
    assert (made.optimizer.name, made.optimizer.learning_rate) == ("adam", 0.02)
    assert made.optimizer.averaging == 0.5  # the key wins over its preset, in any order
    assert with_values(config, dict(reversed(values.items()))) == made
    assert made.style == ["a${b}.jpg", "~x.jpg"]
    assert (made.style_weights, made.steps, made.size) == ([1.0, 2.0], 4, 64)
    assert made.region_styles == {"red": 2}
    assert config == TrainConfig(region_styles={"blue": 1}, size=64)


def test_values_that_are_refused():
    for values, message in (
        ({"objective": {"style_wieght": 1}}, r"did you mean objective\.style_weight\?"),
        ({"optimizer": "sgd"}, "unknown optimizer 'sgd'; there are adam, lbfgs"),
        ({"size": "${seed}"}, r"size: .*'\$\{seed\}' .*could not be converted"),
        ({"style": [3]}, "style is a int; give a path"),
        ({"objective.style_layers": [["relu1_1"]]}, "must be a list of names"),
        ({"style_scale": [1, "big"]}, r"style_scale=\[1, 'big'\] must be a number, or a list of"),
        ({"objective.style_weight": 10**400}, "objective.style_weight: int too large to convert"),
        ({"region_styles": {"red": 2**70}}, r"region_styles\.red=.* is too large"),
    ):
        check_error(message, with_values, TrainConfig(), values)


def test_keys_that_cannot_change_during_a_run():
    once = ("content", "init", "seed", "device", "precision", "output", "resume")
    for key in once:
        message = f"{key} cannot change during a run; start another one"
        check_error(message, changed, TrainConfig(), {"size": 64, key: getattr(TrainConfig(), key)})


def test_the_command_to_copy_reads_as_the_same_file_names():
    typed = ["size=64", "style='my oil.jpg'", "output='a$b.png'", "experiment=bold"]
    assert shlex.split(command_line(typed)) == ["styletransfer", "train", *typed]
    shown = command_line([override("content", "my oil (1).jpg")])
    assert shown == "styletransfer train 'content=my oil (1).jpg'"
    for names in (
        ["a.jpg", "b,c.jpg", "my oil.jpg", "été (1)=[a,b].png", "it's", '"', "-", "null"],
        ["${so}", "\\", " edges ", "\xa0", "[a]", "{b}", "a:b", "choice(1,2)", "a${b}.jpg", "3"],
    ):
        shown = shlex.split(
            command_line([override("content", names[-1]), override("style", names)])
        )
        assert shown[:2] == ["styletransfer", "train"]
        config = composed("train", *parse(shown[2:], TrainConfig).overrides)
        assert (config.content, config.style) == (names[-1], names)


def test_values_of_every_kind():
    values = {
        "size": 300,
        "color": "content_palette",
        "tile": "off",
        "device": "cuda:1",
        "style_scale": [1.0, 2.5],
        "style_weights": [],
        "region_styles": {"red": 1, "0x0000ff": 2, "00e100": 1},
        "style_detail": None,
        "dry_run": True,
    }
    words = [override(key, value) for key, value in values.items()]
    words.append(override("objective.content_weight", 1e-05))
    config = composed("train", *parse(words, TrainConfig).overrides)
    assert {key: getattr(config, key) for key in values} == values
    assert config.objective.content_weight == 1e-05
