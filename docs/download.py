"""Runs pages of the course, and makes notebooks and scripts of them.

`python docs/download.py PAGE.md ...` runs the cells of each page, writes below each cell what it
prints, and makes a notebook and a script of the page in the current folder, as the site offers.
Links in a notebook lead to the repository. A page is not run if a cell has a comment `# shows: `,
as cells have that show pictures, or a table for the installed version of torch.
"""

import json
import re
import sys
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from os.path import normpath
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
ADDRESS = TOOLS["hatch"]["metadata"]["hooks"]["custom"]["address"]
CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.M | re.S)
PRINTED = re.compile(r"^(```\{code-cell\} python\n)(.*?^```\n)(\n```text\n.*?^```\n)?", re.M | re.S)
BLOCK = re.compile(f"{PRINTED.pattern}|^```.*?^```\n", re.M | re.S)
# Pattern of a line in a Chinese page that stands for the next block of code of the English page.
SAME = re.compile(r"^\[(?:代码|输出)[ \d]*\]\(\.\./course/\w+\.md#\S+\)\n", re.M)
UNSEEN = re.compile(r"\A---\n(?s:.*?)^---\n|^\[!\[.*\n\n", re.M)
LINK = re.compile(r"\[([^]]*)\]\(([^)]+)\)")


def whole(page):
    """Return the text of a page; a Chinese page gets the cells of the English page, in order."""
    text, english = page.read_text("utf-8"), page.parents[1] / "course" / page.name
    if not SAME.search(text):
        return text
    blocks = (found[0] for found in BLOCK.finditer(english.read_text("utf-8")))
    return SAME.sub(lambda _: next(blocks), text)


def filled(text):
    """Run the cells of a page, and return its text with the output of each cell below the cell."""
    names = {"__name__": "__main__"}

    def run(found):
        with redirect_stdout(StringIO()) as printed:
            exec(found[2].removesuffix("```\n"), names)
        below = printed.getvalue()
        return found[1] + found[2] + (f"\n```text\n{below}```\n" if below else "")

    return PRINTED.sub(run, text)


def parts(page):
    """Return prose and cells of a page in turn, beginning with prose, without the cells' output."""
    text = PRINTED.sub(r"\1\2", UNSEEN.sub("", whole(page)))
    return [part.strip("\n") for part in CELL.split(text)]


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
    """Write the notebook and the script of a page to a folder, if the page has cells."""
    if CELL.search(whole(page)):
        (folder / f"{page.stem}.ipynb").write_text(notebook(page), "utf-8")
        (folder / f"{page.stem}.py").write_text(script(page), "utf-8")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        if "# shows: " not in (text := path.read_text("utf-8")):
            path.write_text(filled(text), "utf-8")
        write(path, Path())
