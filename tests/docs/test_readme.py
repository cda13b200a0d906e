"""The README says what is so."""

import re
import tomllib

from helpers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_map_is_the_one_that_import_linter_checks() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in linter["contracts"] if each["type"] == "layers")
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| ", README.partition("| room |")[2], re.M)
    assert [row.replace("`", "").split(", ") for row in rows] == [
        layer.split(" | ") for layer in layers
    ]


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
