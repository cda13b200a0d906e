"""Sphinx's settings for the site of this project.

`sphinx-build -M html . build/site --conf-dir docs --fail-on-warning --jobs auto` builds the site.
Its pages are the Markdown files that docs/README.md links to. Files of code that these pages link
to also become pages, and the name of a test becomes a link to the test. If the extra `onnx` and the
npm package onnxruntime-web are installed, the start page begins with a web page that paints.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from os.path import normpath, relpath
from pathlib import Path

from docutils import nodes
from sphinx.parsers import Parser

sys.path.insert(0, str(Path(__file__).parent))
from download import ADDRESS, CELL, PRINTED, ROOT, whole, write

LIST = (ROOT / "docs" / "README.md").read_text("utf-8")
LINK = re.compile(r"\]\(([^):#]+\.(?:md|py|yaml))|`(test_\w+)`")
MARKUP = re.compile(r"(?<!`)(`[^`]+`)(?!`)|(\n\n(?: {4}.*\n|\n)+)|[|*\\]|(?<=\w)_(?=\W)")
TESTS = {
    name: (relpath(file, ROOT), line)
    for file in ROOT.glob("tests/**/*.py")
    for line, words in enumerate(file.read_text("utf-8").splitlines(), 1)
    for name in re.findall(r"^def (test_\w+)", words)
}


def linked(folder, text):
    """Return the files to which the text of a page links, as paths relative to ROOT."""
    found = LINK.findall(text)
    return [TESTS[test][0] if test else normpath(f"{folder}/{path}") for path, test in found]


PAGES = {"README.md", "docs/README.md", *linked("docs", LIST)}
project = html_title = "styletransfer"
copyright = "the styletransfer authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc, exclude_patterns, html_theme = "README", [".*", "build", "outputs"], "furo"
include_patterns = sorted(
    PAGES | {to for page in PAGES for to in linked(Path(page).parent, (ROOT / page).read_text())}
)
source_suffix, myst_heading_anchors = {".md": "myst-nb", ".py": "code", ".yaml": "code"}, 4
nb_execution_raise_on_error = nb_merge_streams = autodoc_preserve_defaults = napoleon_use_ivar = (
    True
)
autodoc_member_order, autodoc_typehints = "bysource", "description"
autodoc_typehints_description_target = "documented_params"
nb_execution_timeout, html_copy_source = 600, False  # 600 seconds
nb_output_stderr = "remove"  # libraries' warnings, which show folder names of this computer
# JavaScript of each page. Long lines of code are wrapped and indented; tables can be scrolled by
# keyboard; for screen readers, captions get a heading level and asides get a name.
MEND = r"""const WIDER = document.documentElement.lang.startsWith("zh")
  ? "左右滑动可以看到整张图 →" : "This map is wider than the page: scroll it sideways →";
onload = () => {
  const all = (query, change) => document.querySelectorAll(query).forEach(change);
  all(".table-wrapper", (one) => (one.tabIndex = 0));
  all(".highlight pre", (code) => {
    const style = "white-space: pre-wrap; overflow-wrap: anywhere; font-size: min(1em, 3.1vw)"
      + "; padding-inline: min(.875rem, 2vw)";
    code.style.cssText = style;
    if (!code.querySelector("[id^=line-]"))
      code.innerHTML = code.innerHTML.replace(/.*\n/g, '<span class="line">$&</span>');
  });
  // A long line is divided behind a bracket or a dot, not inside a name.
  all(".highlight :is(.p, .o)", (one) => one.after(document.createElement("wbr")));
  all(".highlight :is(.line, [id^=line-])", (line) => {
    const indent = line.textContent.search(/\S|$/) + 2;
    line.style.cssText = `display: block; padding-left: ${indent}ch; text-indent: -${indent}ch`;
  });
  all(".caption", (one) => (one.ariaLevel = "2"));
  all("aside", (one) => (one.ariaLabel = one.className));
  all("img[src*=map_]", (one) => (one.style.maxWidth = "none"));  // its text would be too small
  all("p:has(> img[src*=map_])", (one) => {
    one.style.overflowX = "auto";
    one.tabIndex = 0;
    if (one.scrollWidth > one.clientWidth)
      one.insertAdjacentHTML("beforebegin", `<p><small>${WIDER}</small></p>`);
  });
}
// The stepper tells its height.
onmessage = ({ data, source }) => document.querySelectorAll("iframe").forEach((one) => {
  if (data.stepper && one.contentWindow === source) one.style.height = `${data.stepper + 2}px`;
});"""
html_js_files = [(None, {"body": MEND})]
html_theme_options = {"source_repository": ADDRESS, "source_branch": "main", "source_directory": ""}
# The folder of the npm package onnxruntime-web. Without it, or without the extra `onnx`, the site
# has no page that paints.
RUNTIME = find_spec("onnxscript") and os.environ.get("ONNXRUNTIME_WEB")
LEFT_OUT = """WARNING: the page that paints is left out of the site: \
pip install -e '.[docs,onnx]', and name the npm package's folder: ONNXRUNTIME_WEB=FOLDER"""
PAINT = """<p><a href="paint/index.html">Paint a photograph</a> of your own, here and now.</p>
<iframe src="paint/index.html" title="Paint a photograph" allow="camera"
 style="width: 100%; height: min(46rem, 90vh); border: 0; border-radius: 12px"></iframe>"""
SHOWS = re.compile(r"(?<=^```\{code-cell\} python\n)# shows: (.*)\n", re.M)
STEPPER = re.compile(r"^\[!\[.*\]\((.*stepper\.html)\)$", re.M)
FRAME = r"""```{raw} html
<iframe src="\1" title="A backward pass, step by step"
 style="width: 100%; height: 100rem; border: 1px solid #8888; border-radius: 12px"></iframe>
```"""
html_context = {"paints": bool(RUNTIME)}  # if this changes, Sphinx writes all pages again


class Code(Parser):
    """Makes a page of a file of code, with an anchor at each line; the search ignores it."""

    supported = ("code",)

    def parse(self, text, document):
        """Write the code `text` into the page `document`."""
        env = document.settings.env
        env.metadata[env.docname] |= {"nosearch": True, "orphan": True}
        path = str(env.doc2path(env.docname, base=False))
        block = nodes.literal_block(text, text, language=path.rpartition(".")[2])
        block["highlight_args"] = {"linespans": "line"}
        document += nodes.section("", nodes.title("", path), block, ids=["code"])


def add_contents(app, docname, source):
    """Add the table of contents to the start page, and download links to each page with cells.

    A Chinese page gets the cells of the English page. If a page already has the output of a cell,
    the site does not show it again. A picture that links to stepper.html is replaced by that page.
    A cell's comment `# shows: TEXT` becomes the alternative text of its picture.
    """

    def hidden(found):
        option = ":tags: [remove-output]\n" if found[3] else ""
        return f"{found[1]}{option}{found[2]}{found[3] or ''}"

    page = Path(app.env.doc2path(docname))
    if page.parent.name == "zh":
        source[0] = whole(page)
        app.env.note_dependency(page.parents[1] / "course" / page.name)
    source[0] = PRINTED.sub(hidden, STEPPER.sub(FRAME, source[0]))
    source[0] = SHOWS.sub(r':mystnb: {"image": {"alt": "\1"}}\n\g<0>', source[0])
    if CELL.search(source[0]):
        name = Path(docname).name
        found = [f'<a href="{name}.{end}" download>{end}</a>' for end in ("ipynb", "py")]
        words = "下载本页 " if "/zh/" in docname else "This page as a notebook or a script: "
        line = f"\\g<0>\n{words}{', '.join(found)}\n"
        source[0] = re.sub(r"^# .*\n", line, source[0], count=1, flags=re.M)
    listed = f"## Start\n[What is where](README.md)\n{LIST}"
    parts = re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", listed, re.M)
    for heading, text in parts if docname == root_doc else []:
        found = re.findall(r"\[([^]]+)\]\(([^ :#)]+\.md)\)", text)
        pages = "\n".join(f"{title} <docs/{path}>" for title, path in found)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n{pages}\n```\n"


def link_tests(app, tree, docname):
    """Replace the name of a test by the short link "test", which leads to the test's code."""
    for node in [each for each in tree.findall(nodes.literal) if each.astext() in TESTS]:
        file, line = TESTS[node.astext()]
        uri = app.builder.get_relative_uri(docname, file.removesuffix(".py"))
        words = {"refuri": f"{uri}#line-{line}", "reftitle": node.astext()}
        node.replace_self(nodes.reference("", "test", **words))


def as_rst(app, what, name, obj, options, lines):
    """Turn a docstring, plain text with `code` and indented code, into reStructuredText."""

    def marked(found):
        code, block = found.groups()
        return f"`{code}`" if code else f"\n\n::{block}" if block else f"\\{found[0]}"

    lines[:] = MARKUP.sub(marked, "\n".join([*lines, ""])).split("\n")


def show_page(app, pagename, templatename, context, doctree):
    """Show the page that paints above the start page; mark Chinese pages as Chinese."""
    if pagename.startswith("docs/zh/"):
        context["language"] = "zh-CN"
    if RUNTIME and pagename == root_doc:
        context["body"] = PAINT + context["body"]


def setup(app):
    """Connect these functions to Sphinx; meanwhile, another process makes the page that paints."""
    start, page = Path(app.outdir, "README.html"), Path(app.outdir, "paint")
    shutil.rmtree(page, ignore_errors=True)
    words = ["export", "target=web", f"output={page}", f"runtime={RUNTIME}"]
    command = [sys.executable, "-m", "styletransfer", *words]
    export = subprocess.Popen(command, stdout=subprocess.DEVNULL) if RUNTIME else None

    def finish(app, wrong):
        if export is None:
            print(LEFT_OUT, file=sys.stderr)
        elif export.wait():
            raise RuntimeError("the page that paints could not be made")
        if not wrong:  # copy the start page to index.html
            shutil.copy(start, start.with_name("index.html"))
            shutil.copy(ROOT / "docs/course/stepper.html", Path(app.outdir, "docs", "course"))
            for page in (ROOT / "docs").glob("*/*.md"):
                write(page, Path(app.outdir, "docs", page.parent.name))

    app.add_source_parser(Code)
    app.connect("source-read", add_contents)
    app.connect("doctree-resolved", link_tests)
    app.connect("html-page-context", show_page)
    app.connect("autodoc-process-docstring", as_rst, priority=400)
    app.connect("build-finished", finish)
