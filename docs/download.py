"""Makes a notebook and a script of pages of the course: `python docs/download.py PAGE.md ...`.

The site offers them for download. Links in a notebook lead to the repository.
"""

import json
import re
import sys
import tomllib
from os.path import normpath
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
ADDRESS = TOOLS["hatch"]["metadata"]["hooks"]["custom"]["address"]
CELL = re.compile(r"^```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)^```$", re.M | re.S)
UNSEEN = re.compile(r"\A---\n.*?^---\n|^```\{raw\} html\n.*?^```\n\n", re.M | re.S)
LINK = re.compile(r"\[([^]]*)\]\(([^)]+)\)")


def parts(page):
    """Return the page's prose and cells in turn, beginning with prose."""
    return [part.strip("\n") for part in CELL.split(UNSEEN.sub("", page.read_text("utf-8")))]


def notebook(page):
    """Return the text of the notebook of a page."""
    folder = page.resolve().parent.relative_to(ROOT)

    def absolute(link):
        outside = link[2].startswith(("https:", "#"))
        path = link[2] if outside else f"{ADDRESS}/blob/main/{normpath(folder / link[2])}"
        return f"[{link[1]}]({path})"

    cells, code = [], {"cell_type": "code", "execution_count": None, "outputs": [], "metadata": {}}
    for number, part in enumerate(parts(page)):
        prose = {"cell_type": "markdown", "metadata": {}, "source": LINK.sub(absolute, part)}
        cells.append(code | {"source": part} if number % 2 else prose)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def script(page):
    """Return the text of the script of a page: prose as comments; pictures are saved as files."""
    texts = []
    for number, part in enumerate(parts(page)):
        if number % 2 == 0:
            part = "\n".join(f"# {line}".rstrip() for line in LINK.sub(r"\1", part).split("\n"))
        save = rf'\1.save("{page.stem}_{number}.png")'
        texts.append(re.sub(r"^(show\(.*\))$", save, part, flags=re.M))
    return "\n\n".join(texts) + "\n"


def write(page, folder):
    """Write both to a folder, if the page has cells."""
    if CELL.search(page.read_text("utf-8")):
        (folder / f"{page.stem}.ipynb").write_text(notebook(page), "utf-8")
        (folder / f"{page.stem}.py").write_text(script(page), "utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name), Path())
