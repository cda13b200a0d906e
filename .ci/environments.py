#!/usr/bin/env python3
"""Run the tests in the environments that users have: .ci/environments.py [NAME ...]

readme: a fresh clone of the last commit, installed and tested by README's two commands
3.11, 3.12, 3.13, 3.14: the newest versions of all dependencies, with all extras
lowest: the lowest versions that pyproject.toml allows, with all extras, on Python 3.13
next: as 3.13, but with pre-releases of the dependencies, to see early what will break

Without NAME, all except `next` are run. Each runs the quick tests and those of tests/test_tour.py;
a table at the end says what passed, failed and was skipped. `lowest` simulates a processor without
AVX and bfloat16 units. A Python that this machine lacks is reported and skipped. `readme` writes a
JUnit report of its tests to the path in the variable REPORT, if there is one. All but `readme`
need uv, or its path in the variable UV. `.ci/environments.py --find 3.12` prints a Python's path.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "dev,onnx,video,studio,sweep,browser,release,docs"
NAMES = ["readme", "lowest", "3.11", "3.12", "3.13", "3.14", "next"]
PYTHONS = {"lowest": "3.13", "next": "3.13"}
VERSIONS = {"lowest": ["--resolution=lowest-direct"], "next": ["--prerelease=allow"]}
UV = os.environ.get("UV", "uv")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # store compiled modules, see .ci/run
WITHOUT_AVX = {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"}


def readme_commands() -> list[str]:
    """Return the commands of README's section "Two commands"."""
    section = (ROOT / "README.md").read_text().partition("\n## Two commands\n")[2]
    first, second = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)[:2]
    return [first.strip(), second.strip()]


def interpreter(version: str) -> str | None:
    """Return the path of a Python such as "3.12", found by uv or in pyenv's folder, or None."""
    command = [UV, "python", "find", "--no-python-downloads", "--system", version]
    with suppress(FileNotFoundError):  # uv is not installed
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next(map(str, pyenv.glob(f"versions/{version}.*/bin/python3")), None)


def shown(command: str | list[str], folder: Path, **variables: str) -> tuple[int, str]:
    """Run a command and print its output as it comes; return its exit status and its output."""
    print(f"$ {command if isinstance(command, str) else ' '.join(command)}", flush=True)
    process = subprocess.Popen(
        ["bash", "-c", command] if isinstance(command, str) else command,
        cwd=folder,
        env=os.environ | variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def last_words(status: int, output: str) -> str:
    """Return a table cell for a run of pytest: its final counts, and what was skipped and why."""
    *_, counts = re.findall(r"\d+ (?:passed|failed).*?(?= in )", output) or ["did not run"]
    reasons = re.findall(r"^skipped (\d+) .*?: (.*)$", output, re.MULTILINE)
    told = "; ".join(f"{count} {reason}" for count, reason in reasons)
    return f"{'RED ' if status else ''}{counts}{f' ({told})' if told else ''}"


def tried(name: str, folder: Path) -> list[str]:
    """Set up an environment and run the tests in it; return its row of the table."""
    variables, root = {}, ROOT
    if name == "readme":
        root, (install, quick) = folder / "clone", readme_commands()
        shown(["git", "clone", "--quiet", str(ROOT), str(root)], folder)
        python = root / ".venv" / "bin" / "python"
        # What is never imported need not be compiled: pip takes the 0 for its setting `compile`.
        status, output = shown(install, root, PIP_NO_COMPILE="0")
        picture = output.splitlines()[-1] if output else ""
        status = status or int(not Path(picture).is_file())
        if report := os.environ.get("REPORT"):
            option = f"--junitxml={Path(report).absolute()}"
            variables = {"PYTEST_ADDOPTS": shlex.quote(option)}
    else:
        version = PYTHONS.get(name, name)
        if (base := interpreter(version)) is None:
            return [name, f"there is no Python {version} on this machine", ""]
        python = folder / "bin" / "python"
        status, _ = shown([UV, "venv", "--quiet", "--python", base, str(folder)], ROOT)
        pip = [UV, "pip", "install", "--quiet", "--python", str(python)]
        install = [*pip, *VERSIONS.get(name, []), "-e", f".[{EXTRAS}]"]
        status = status or shown(install, ROOT)[0]
        quick = f"{python} -m pytest --numprocesses auto --all -m 'tour or not slow'"
        variables = WITHOUT_AVX if name == "lowest" else {}
    if status:
        return [name, "RED", ""]
    cells = [last_words(*shown(quick, root, **variables))]
    if name == "readme":
        tour = f"{python} -m pytest --numprocesses auto --all -m tour tests/test_tour.py"
        cells.append(f"tour: {last_words(*shown(tour, root))}")
    return [name, "ok", "; ".join(cells)]


def main(names: list[str]) -> int:
    """Test the environments `names`; print a table, and return 1 if an environment failed."""
    if names[:1] == ["--find"]:
        found = interpreter(names[1])
        print(found or "", end="")
        return int(found is None)
    if unknown := set(names) - set(NAMES):
        print(f"unknown environments {', '.join(unknown)}; choose from {', '.join(NAMES)}")
        return 2
    rows = []
    for name in names or NAMES[:-1]:
        print(f"\n== environment {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            rows.append(tried(name, Path(folder)))
    print("\n| environment | set-up | quick tests and tour |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return int(any("RED" in cell for row in rows for cell in row))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
