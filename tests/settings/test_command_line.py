"""Settings as the words of a command line, which read as the same settings again."""

import shlex

from helpers import composed

from styletransfer.cli.arguments import parse
from styletransfer.config import TrainConfig
from styletransfer.settings.values import command, override


def test_the_command_to_copy():
    assert command(None) == ""
    typed = ["size=64", "style='my oil.jpg'", "output='a$b.png'", "experiment=bold"]
    expected = "styletransfer train size=64 'style=my oil.jpg' 'output='\"'\"'a$b.png'\"'\"'' "
    assert command(typed) == expected + "experiment=bold"


def test_what_is_shown_reads_as_the_same_file_names():
    for names in (
        ["a.jpg", "b,c.jpg", "my oil.jpg", "été (1)=[a,b].png", "it's", '"', "null"],
        ["${so}", "\\", " edges ", "\xa0", "[a]", "{b}", "a:b", "choice(1,2)", "a${b}.jpg", "3"],
    ):
        shown = shlex.split(command([override("content", names[-1]), override("style", names)]))
        assert shown[:2] == ["styletransfer", "train"]
        config = composed("train", *parse(shown[2:], TrainConfig).overrides)
        assert (config.content, config.style) == (names[-1], names)


def test_values_of_every_kind():
    values = {
        "size": 300,
        "color": "content_palette",
        "tile": "off",
        "precision": "256",
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
