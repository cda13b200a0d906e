"""Each measured number of the README and docs/speed.md has its command in docs/numbers.yaml."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from helpers import ROOT, composed
from omegaconf import OmegaConf

from benchmarks import commands as tools
from styletransfer.settings.registry import commands

MEASURED = OmegaConf.to_container(OmegaConf.load(ROOT / "docs" / "numbers.yaml"))
PAGES = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "docs/speed.md")}


def test_each_number_stands_on_its_page():
    for item in MEASURED:
        for page, numbers in item["numbers"].items():
            for number in numbers:
                assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", PAGES[page]), number


def test_each_number_measured_has_a_command():
    found = re.compile(r"(?<![\w.])(?:\d+\.\d+(?![\w.])|1/\d+|\d+e-\d+)")
    listed = [number for item in MEASURED for number in item["numbers"].get("docs/speed.md", [])]
    text = re.sub(r"```.*?```", "", PAGES["docs/speed.md"], flags=re.S)
    assert {*found.findall(text)} - {*found.findall(" ".join(listed))} == set()


@pytest.mark.parametrize("command", [each["command"] for each in MEASURED if "at" not in each])
def test_each_command_exists_with_its_keys(command):
    words = shlex.split(command)
    while "=" in words[0] or words[0] in ("/usr/bin/time", "-v"):
        del words[0]
    if words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2])
    elif words[0] == "python" and not words[1].startswith("-"):
        assert (ROOT / words[1]).is_file()
        name, flags = Path(words[1]).stem, [word for word in words if word.startswith("--")]
        if flags:  # a script with a parser of its own
            assert all(f'"{flag}"' in (ROOT / words[1]).read_text("utf-8") for flag in flags)
        else:
            composed(commands().get(name) or getattr(tools, name), *words[2:])
