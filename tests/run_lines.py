"""Run random command lines and judge how each ends: `python tests/run_lines.py FOLDER COUNT`.

Each is, by its seed, a tiny job that would succeed, and one to three words that may break it. It
runs in a process of its own with little time and memory, succeeds and leaves the file that its last
line names, or fails in one line of ours and leaves nothing; anything else is a fault, which is
printed with its line. The last line printed is the count of each outcome.
"""

import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_origin

import psutil
import torch
from galleries import make_run
from helpers import ROOT, picture
from PIL import Image
from safetensors.torch import save_file

from styletransfer.cli import main as styletransfer
from styletransfer.cli import module
from styletransfer.config.commands import COMMANDS, SCHEMAS
from styletransfer.errors import UserError
from styletransfer.features import vgg
from styletransfer.networks import LAYOUTS, StyleNetwork, file
from styletransfer.pictures import images
from styletransfer.settings.schemas import keys

LAYERS = ["objective.content_layers=[relu2_1]", "objective.style_layers=[relu1_1,relu2_1]"]
PICTURES = ["content=content.png", "style=style.png"]
RUN = ["experiment=tiny", *PICTURES, "steps=2", "scales=1"]
CROPS = ["pictures=null", "steps=2", "batch=1", "crop=16", "style_size=40", "device=cpu"]
# Command -> words that make it a matter of a moment.
TINY = {
    "train": RUN,
    "compare": [*RUN, "rounds=1", "points=2"],
    "explain": RUN,
    "gradcheck": [],
    "mix": ["run", "strength=0.5"],
    "train_network": ["style=style.png", "preview=content.png", "network=tiny", *LAYERS, *CROPS],
    "apply": ["network=network.safetensors", "input=content.png", "output=painted.png"],
    "export": ["network=network.safetensors", "output=net.onnx"],
    "film": [*RUN, "frame_steps=1", "output=painted.mp4"],
    "gallery": ["painted"],
    "studio": ["open=false"],
    "train_tiny": ["--steps", "3"],
    "": [],
}
# How often each is taken, of 26: what reads most kinds of keys, most.
OFTEN = {"train": 9, "compare": 3, "explain": 2}
# Kind of word -> the words. "x*300" stands for 300 of them.
POOLS: dict[str, list[str]] = {
    kind: [{"x*300": "x" * 300, "9*5000": "9" * 5000}.get(word, word) for word in pool]
    for kind, pool in json.loads((ROOT / "tests/command_lines.json").read_text("utf-8")).items()
}
# In seconds of work: until Ctrl-C ends what may rightly take long, and from then to the end.
PATIENCE, GRACE = 20, 10
# How much longer a line may take by the clock, where other processes are at work.
BUSY = 20
MEMORY = 3 * 2**30
"""In bytes, what a line may take above the process that it starts from."""
PROGRESS = re.compile(r"step/s|s/step|\d+/\d+ \[")
# What Hydra itself writes, and logs.
RECORD = re.compile(r"(^|/)(\.hydra/[a-z]+\.yaml|multirun\.yaml|[a-z_]+\.log)$")
# Commands that only Ctrl-C ends, and the seconds after which it does.
SERVING, LONG_ENOUGH = {"studio"}, 5
# A folder that was there before, or a name that only Hydra knows: its files are left.
OWN_FOLDER = {"hydra.run.dir=.", "hydra.output_subdir=../up"}


def command_line(seed: int, index: int) -> list[str]:
    """Return one command line, without the program's name."""
    chance = random.Random(f"{seed} {index}")
    command = chance.choices(list(TINY), [OFTEN.get(name, 1) for name in TINY])[0]
    if not command:
        words = ["gradcheck", "trian", "size=3", _of(chance, "flags"), _of(chance, "junk")]
        return chance.sample(words, chance.randrange(4))
    words = list(TINY[command])
    for _ in range(chance.choice((1, 1, 2, 3))):
        # Mostly at the end, where a value replaces an earlier one of the same key.
        place = len(words) if chance.random() < 0.9 else chance.randrange(len(words) + 1)
        words.insert(place, _word(command, chance))
    if chance.random() < 0.1:
        words += [chance.choice(("-m", "--multirun", "hydra.mode=MULTIRUN")), _of(chance, "sweeps")]
    return [command, *words]


def _of(chance: random.Random, *kinds: str) -> str:
    return chance.choice(POOLS[chance.choice(kinds)])


def _word(command: str, chance: random.Random) -> str:
    if command not in SCHEMAS:
        return _of(chance, "flags", "flags", "junk")
    kind = chance.random()
    if kind < 0.72:
        return _setting(SCHEMAS[command], chance)
    if kind < 0.79:
        return f"{_of(chance, 'groups')}={_of(chance, 'presets')}"
    if kind < 0.96:
        resume = "resume" if command in ("train", "explain") else "sweeps"
        return _of(chance, "hydra", "flags", resume)
    return _of(chance, "junk", "files") + chance.choice(("", "=3"))


def _setting(schema: Any, chance: random.Random) -> str:
    """A key of the command, and a value that is likely to be of its type, but not to be good."""
    key, field = chance.choice([pair for pair in keys(schema) if not is_dataclass(pair[1].type)])
    kinds = {int: "whole numbers", float: "numbers", bool: "words", str: "words"}
    kind = "lists" if get_origin(field.type) is list else kinds.get(field.type, "words")
    if "each" in field.metadata:
        kind = "numbers"
    if "path" in field.metadata:
        kind = "files"
    if chance.random() < 0.2:
        kind = chance.choice(("whole numbers", "numbers", "words", "lists", "junk", "junk"))
    spoilt = chance.random()
    if spoilt < 0.03:  # a letter lost or doubled
        place = chance.randrange(len(key))
        key = key[:place] + chance.choice(("", key[place] * 2)) + key[place + 1 :]
    prefix = chance.choice(("+", "++", "~")) if spoilt > 0.97 else ""
    value = _of(chance, kind)
    if "each" in field.metadata and chance.random() < 0.5:  # one, or several
        value = f"[{value},{_of(chance, kind)}]"
    return f"{prefix}{key}={value}"


def furnish(desk: Path) -> None:
    """Make the good and bad files that command lines name."""
    desk.mkdir(parents=True)
    for seed, name in enumerate(("content.png", "style.png", "été (1)=[a,b].png")):
        images.write(desk / name, (1 - 0.8 * (seed == 1)) * picture(seed, 40, 48))
    good = (desk / "content.png").read_bytes()
    (desk / "truncated.png").write_bytes(good[: len(good) // 2])
    (desk / "text.jpg").write_text("This is not a picture.\n" * 50)
    (desk / "text.pth").write_text("hello")
    Image.new("RGB", (1, 1), "teal").save(desk / "1x1.png")
    for name in ("empty.png", "empty.safetensors"):
        (desk / name).touch()
    for name in ("folder", "folder.pth", "my/experiment"):
        (desk / name).mkdir(parents=True)
    (desk / "my/experiment/broken.yaml").write_text("a: [1,\n")
    make_run(desk / "painted/0", {"size": 16})
    (desk / "locked").mkdir(mode=0o500)
    os.mkfifo(desk / "fifo")
    (desk / "loop.png").symlink_to("loop.png")
    (desk / "gone.png").symlink_to("nowhere/a.png")
    file.write(desk / "network.safetensors", StyleNetwork(LAYOUTS["tiny"], 2), ["oil", "wash"])
    save_file({"features.0.weight": torch.zeros(5, 3, 3, 3)}, desk / "other.safetensors")


def contents(desk: Path) -> dict[str, bytes | None]:
    """Return name -> bytes of everything below a folder; None for what is no file."""
    return {
        str(path.relative_to(desk)): path.read_bytes() if path.is_file() else None
        for path in desk.rglob("*")
    }


def run(words: list[str], desk: Path) -> tuple[int, bool]:
    """Run a command line; return its wait status and whether Ctrl-C had to end it."""
    process = os.fork()
    if not process:
        os.chdir(desk)
        os.environ |= {"HOME": str(desk), "TMPDIR": str(desk.parent / "tmp")}
        tempfile.tempdir = None
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
            way = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(desk.parent / name, way), number)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        styletransfer(words)
        sys.exit()  # as the real one ends, with all that Python does then
    for seconds, number in ((PATIENCE, signal.SIGINT), (GRACE, signal.SIGKILL)):
        work, began = psutil.Process(process), time.monotonic()
        end = sum(work.cpu_times()[:2]) + seconds
        serves = number == signal.SIGINT and words and words[0] in SERVING
        latest = began + (LONG_ENOUGH if serves else BUSY * seconds)
        while sum(work.cpu_times()[:2]) < end and time.monotonic() < latest:
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                return status, number != signal.SIGINT
            time.sleep(0.01)
        os.kill(process, number)
    return os.waitpid(process, 0)[1], True


def judge_line(words: list[str], desk: Path, before: dict[str, bytes | None]) -> tuple[str, str]:
    """Run a command line; return its outcome and what it said. An outcome of FAULT says why."""
    status, stopped = run(words, desk)
    out = (desk.parent / "stdout").read_text(errors="surrogateescape")
    err = (desk.parent / "stderr").read_text(errors="surrogateescape")
    said = [line for line in re.split("[\r\n]+", err) if line.strip() and not PROGRESS.search(line)]
    after = contents(desk)
    new = sorted(set(after) - set(before))
    made = [name for name in new if after[name] is not None and not RECORD.search(name)]
    told = "\n".join(said)
    if os.WIFSIGNALED(status) and not (stopped and os.WTERMSIG(status) == signal.SIGINT):
        return f"FAULT: ended by signal {os.WTERMSIG(status)}", told
    outputs = [os.path.normpath(word.partition("=")[2]) for word in words if "output=" in word]
    if any(after.get(name, b"") != before[name] for name in before if name not in outputs):
        return "FAULT: changed or removed a file that was there", told
    if any(re.search(r"\.tmp$|\.lock$", name) for name in new) or any(
        (desk.parent / "tmp").iterdir()
    ):
        return f"FAULT: left a temporary file: {new}", told
    if strange := [line for line in said if not line.startswith(("error: ", "note: "))]:
        return f"FAULT: said {strange[:9]}", err[-3000:]
    errors = [line for line in said if line.startswith("error: ")]
    code = os.WEXITSTATUS(status)
    if code == 0 and not stopped:
        return _succeeded(words, out, errors, desk), told or out[-200:]
    if stopped:
        return "stopped" if code in (0, 130) else f"FAULT: stopped with status {code}", told
    sweep = {"-m", "--multirun", "hydra.mode=MULTIRUN"} & set(words)
    if code not in (1, 2) or not errors or (len(errors) > 1 and not sweep):
        return f"FAULT: status {code} with {len(errors)} lines", told
    if len(told) > 20000:
        return "FAULT: said very much", told
    left = [name for name in new if after[name] is not None]
    if left and not made and not OWN_FOLDER & set(words):
        return f"FAULT: failed and left {left}", told
    return "gave up" if made else "refused", told


def _succeeded(words: list[str], out: str, errors: list[str], desk: Path) -> str:
    """Judge a line that ended with status 0."""
    if errors:
        return "FAULT: an error with status 0"
    looks = "--help|-h|--version|--cfg.*|-c|dry_run=.*"
    told = not words or words[0] not in SCHEMAS
    if told or any(re.fullmatch(looks, word) for word in words):
        return "done" if out.strip() else "FAULT: printed nothing"
    last = out.splitlines()[-1] if out else ""
    return "done" if (desk / last).is_file() else f"FAULT: promised {last!r}"


def main(folder: Path, count: int, seed: int = 0, first: int = 0) -> int:
    """Run so many command lines from the `first` on; return the number of faults."""
    torch.set_num_threads(1)
    vgg.WIDTHS["vgg19"] = tuple((4,) * len(block) for block in vgg.WIDTHS["vgg19"])  # type: ignore[index]
    torch.optim.Adam([torch.zeros(1)])  # torch imports much at the first one: once, not for each
    for name in COMMANDS:
        importlib.import_module(module(name))

    def unreachable(name: str) -> dict[str, torch.Tensor]:
        raise UserError(f"{name}'s weights cannot be downloaded (no route); use features=bundled")

    vgg.pretrained_state = unreachable
    counts: Counter[str] = Counter()
    for index in range(first, first + count):
        words, place = command_line(seed, index), folder / str(index)
        furnish(place / "desk")
        (place / "tmp").mkdir()
        outcome, said = judge_line(words, place / "desk", contents(place / "desk"))
        counts[outcome.partition(":")[0]] += 1
        if outcome.startswith("FAULT"):
            print(f"line {index}: {words}\n  {outcome}\n  {said}", flush=True)
        (place / "desk/locked").chmod(0o700)
        shutil.rmtree(place)
    print(json.dumps(counts))
    return counts["FAULT"]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:])) > 0)
