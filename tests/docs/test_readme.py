"""The README says what is so."""

import re
import tomllib

from helpers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_map_is_the_one_that_import_linter_checks():
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in linter["contracts"] if each["type"] == "layers")
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| ", README.partition("| room |")[2], re.M)
    assert [row.replace("`", "").split(", ") for row in rows] == [
        layer.split(" | ") for layer in layers
    ]


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
        local = [link for link in links if "://" not in link]
        assert [link for link in local if not (page.parent / link).exists()] == []


def test_pages_name_tests_that_exist():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/*.py"))
    named = set(re.findall(r"`(test_\w+)`", pages))
    assert len(named) > 30
    assert [name for name in sorted(named) if f"def {name}(" not in tests] == []
