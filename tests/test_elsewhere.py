"""A run without what Windows, macOS or an install without extras lacks, in a new process."""

import os
import sys

import pytest
from helpers import ROOT, needs, process, write_pictures
from PIL import Image

# Libraries are imported first, for this system; the package then sees Windows. macOS lacks less.
LACKING = """
import importlib, os, signal, sys
for name in ("asyncio", "filelock", "hydra.main", "multiprocessing.shared_memory",
             "multiprocessing.resource_tracker", "psutil", "torch", "torchvision", "uvicorn",
             "webbrowser"):
    importlib.import_module(name)
sys.platform = "win32"
sys.modules |= dict.fromkeys(("fcntl", "resource", "pwd", "grp", "imagecodecs"))
gone = {os: ["posix_fallocate", "sched_getaffinity", "fork", "mkfifo", "nice", "getuid", "killpg",
             "O_NOFOLLOW"],
        signal: ["SIGHUP", "SIGKILL", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGPIPE", "sigwait",
                 "pthread_sigmask", "pthread_kill", "alarm", "setitimer"]}
for module, names in gone.items():
    for name in names:
        delattr(module, name)
"""
# Import every module, then run one command.
CODE = """
from pathlib import Path
import styletransfer
from styletransfer.cli import main
folder = Path(styletransfer.__file__).parent
if (folder / "studio").exists():
    from styletransfer.studio.worker import _how_it_ended
    assert _how_it_ended(-15) == "was ended by SIGTERM"
for path in sorted(folder.rglob("*.py")):
    if path.stem != "__main__":
        parts = path.relative_to(folder.parent).with_suffix("").parts
        importlib.import_module(".".join(parts).removesuffix(".__init__"))
main(sys.argv[1:])
"""


@pytest.mark.slow  # a new process imports torch
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="it is elsewhere already")
def test_it_is_imported_and_paints_without_what_others_lack(tmp_path):
    """Check also that a code page 1252 console escapes other letters; files keep their names."""
    needs("studio", "uvicorn")
    write_pictures(tmp_path / "фото.png", tmp_path / "b.tif")
    words = ["train", "experiment=tiny", "steps=2", "size=24", "features.weights=random"]
    words += ["device=cpu", "content=фото.png", "style=b.tif", "output=été, картина.png"]
    command = (sys.executable, "-W", "error", "-c", LACKING + CODE, *words)
    environment = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = process(*command, cwd=tmp_path, env=environment, encoding="cp1252")
    assert done.returncode == 0, done.stderr
    name = "картина".encode("ascii", "backslashreplace").decode()
    assert done.stdout.splitlines()[-1] == f"été, {name}.png"
    with Image.open(tmp_path / "été, картина.png") as painted:
        painted.load()
