"""README and CONTRIBUTING are correct; the recipes work in a copy of the project."""

import re
import shlex
import shutil
import sys
import tomllib

import pytest
from helpers import ROOT, process, write_pictures

from styletransfer import __version__
from styletransfer.errors import DISTRIBUTION
from styletransfer.pictures import images

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# A recipe's code block: file, line of the file to insert below ("" for a new file), and text.
BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+?)(?:, below ([^\n]+))?\n(.*?)```", re.S)
PAINT = ["experiment=tiny", "content=a.png", "style=b.png", "features.weights=random"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a copy of the project with all recipes applied, and two pictures in it."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("styletransfer", "configs", "scripts", "assets"):
        shutil.copytree(ROOT / name, folder / name)
    for path, line, text in BLOCK.findall(TEXT):
        file = folder / path
        if not line:
            assert not file.exists(), path
            file.write_text(text, encoding="utf-8")
            continue
        before, found, after = file.read_text(encoding="utf-8").partition(f"\n{line}\n")
        assert found, f"{path} has no line {line!r}"
        file.write_text(f"{before}{found}{text}{after}", encoding="utf-8")
    key = folder / "styletransfer" / "settings" / "train.py"
    first = '"gram", '  # of the choices of style_loss
    assert key.read_text().count(first) == 1
    key.write_text(key.read_text().replace(first, f'{first}"mean_only", '))
    write_pictures(folder / "a.png", folder / "b.png")
    return folder


def run(copy, script, *lines):
    """Run a script with each list of arguments in turn, in one process; return its output."""
    run = f"sys.argv[1:] = words; runpy.run_path('scripts/{script}.py', run_name='__main__')"
    code = f"import runpy, sys\nfor words in {[*map(list, lines)]}: {run}"
    done = process(sys.executable, "-c", code, cwd=copy, env={"PYTHONPATH": str(copy)})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow  # new processes import torch
def test_the_recipes_work_on_a_copy(copy):
    said = run(copy, "hello", ["name=reader"], ["--help"])
    assert said.startswith("hello, reader\n")
    assert "Who is greeted" in said
    added = (["objective.style_loss=mean_only"], ["mirrored=true", "steps=1"], ["canvas=b.png"])
    lines = [[*PAINT, *words, f"output={number}.png"] for number, words in enumerate([[], *added])]
    page = run(copy, "train", *lines, ["--help"])
    plain, *others = (images.read(copy / f"{number}.png").rgb for number in range(4))
    assert not any(other.equal(plain) for other in others)
    assert "mirrored" in page
    assert "Path of a picture whose light" in page


def test_the_map_is_the_list_of_folders_in_the_order_of_imports():
    """The files beside the folders, such as train.py, are no rooms of the map."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = linter["contracts"][0]["layers"]
    names = [name for layer in layers for name in layer.split(" | ")]
    rooms = re.findall(r"^\| `([a-z_]+)` \| ", README.partition("| room |")[2], re.M)
    assert rooms == [name for name in names if (ROOT / "styletransfer" / name).is_dir()]
    assert len(rooms) <= 17


def test_each_core_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = TEXT.partition("## Dependencies")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z0-9-]+)`", " ".join(re.findall(r"^\|([^|]+)\|", table, re.M)))
    needed = [re.split("[<>=]", line)[0] for line in project["dependencies"]]
    assert sorted(named) == sorted(needed)


def commands_of(text):
    """Return the lines of a page's bash blocks, and its words that begin with key or program."""
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.S)).replace("\\\n", " ")
    inline = re.findall(r"`('?(?:python |styletransfer |[a-z_.]+=)[^`\n]*)`", text)
    return [*blocks.splitlines(), *inline]


def test_bash_passes_on_the_words_of_a_command_as_typed(tmp_path):
    """Lines for the shell itself, such as with a variable or a pipe, are left out."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    pages += [*ROOT.glob("assets/**/*.md"), *ROOT.glob("benchmarks/results/*.md")]
    lines = [line for page in pages for line in commands_of(page.read_text(encoding="utf-8"))]
    numbers = (ROOT / "docs" / "numbers.yaml").read_text(encoding="utf-8")
    lines += re.findall(r"  command: (.*)", numbers)
    plain = [line for line in lines if not re.search(r"[$|&;<>()]|\.\.\.|^\s*(#|$)", line)]
    assert len(plain) > 200
    script = "".join(f"printf '%s\\n' {line}\necho -\n" for line in plain)
    *passed, _ = process("bash", "-c", script, cwd=tmp_path).stdout.split("\n-\n")
    typed = ["\n".join(shlex.split(line, comments=True)) for line in plain]
    found = zip(plain, typed, passed, strict=True)
    assert [line for line, words, received in found if words != received] == []


def test_one_name_of_the_package_and_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_links_lead_somewhere():
    """The source archive, which has PKG-INFO, does not contain the pictures of the pages."""
    left_out = (".jpg", ".png") if (ROOT / "PKG-INFO").exists() else ()
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        links = re.findall(r"\]\(([^)#\s]+)\)", prose)
        local = [link for link in links if "://" not in link and not link.endswith(left_out)]
        assert [link for link in local if not (page.parent / link).exists()] == []


def anchors(page):
    """Return what GitHub, and the site, make of the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_to_sections_lead_to_a_heading():
    lost = []
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
        for path, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text("utf-8")):
            to = page.parent / path if path else page
            if to.suffix == ".md" and anchor not in anchors(to):
                lost.append((page.name, path, anchor))
    assert lost == []


def test_pages_name_tests_that_exist():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md"))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/*.py"))
    named = set(re.findall(r"`(test_\w+)`", pages))
    assert len(named) > 10
    assert [name for name in sorted(named) if f"def {name}(" not in tests] == []
