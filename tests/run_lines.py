"""Run random command lines and judge how each ends: `python tests/run_lines.py FOLDER COUNT`.

Each is, by its seed, a tiny job that would succeed, and one to three words that may break it. It
runs in a process of its own with little time and memory, succeeds and leaves the file that its last
line names, or fails in one line of ours and leaves nothing; anything else is a fault, which is
printed with its line. The last line printed is the count of each outcome.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_origin

import psutil
import torch
from galleries import make_run
from hard_runs import end_of, start, warm_up
from helpers import LAYERS, ROOT, files_in, picture
from PIL import Image
from safetensors.torch import save_file

from styletransfer.errors import UserError
from styletransfer.features import vgg
from styletransfer.networks import LAYOUTS, StyleNetwork, file
from styletransfer.pictures import images
from styletransfer.settings.commands import SCHEMAS
from styletransfer.settings.schemas import keys

RUN = ["experiment=tiny", "content=content.png", "style=style.png", "steps=2", "scales=1"]
CROPS = ["pictures=null", "steps=2", "batch=1", "crop=16", "style_size=40", "device=cpu"]
# Command -> words that make it a matter of a moment.
TINY = {
    "train": RUN,
    "compare": [*RUN, "rounds=1"],
    "explain": RUN,
    "gradcheck": [],
    "mix": ["run", "strength=0.5"],
    "train_network": ["style=style.png", "preview=content.png", "network=tiny", *LAYERS, *CROPS],
    "apply": ["network=network.safetensors", "input=content.png", "output=painted.png"],
    "export": ["network=network.safetensors", "output=net.onnx"],
    "film": [*RUN, "frame_steps=1", "output=painted.mp4"],
    "gallery": ["painted"],
    "studio": ["open=false"],
    "": [],
}
# Weights of the commands in the random choice; those with most kinds of keys have more than 1.
OFTEN = {"train": 9, "compare": 3, "explain": 2}
# Kind of word -> the words. "x*300" stands for 300 of them.
POOLS: dict[str, list[str]] = {
    kind: [{"x*300": "x" * 300, "9*5000": "9" * 5000}.get(word, word) for word in pool]
    for kind, pool in json.loads((ROOT / "tests/command_lines.json").read_text("utf-8")).items()
}
MEMORY = 3 * 2**30
"""In bytes, what a line may take above the process that it starts from."""
PROGRESS = re.compile(r"(step|frame)/s|s/(step|frame)|\d+/\d+ \[")
# What Hydra itself writes, and logs.
RECORD = re.compile(r"(^|/)(\.hydra/[a-z]+\.yaml|multirun\.yaml|[a-z_]+\.log)$")
SWEEP = {"-m", "--multirun", "hydra.mode=MULTIRUN"}
# A folder that was there before, or a name that only Hydra knows: its files are left.
OWN_FOLDER = {"hydra.run.dir=.", "hydra.output_subdir=../up"}


def command_line(seed, index):
    """Return one command line, without the program's name; the first of all has nothing broken."""
    if index == 0:
        return ["train", *RUN]
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
        words += [chance.choice(sorted(SWEEP)), _of(chance, "sweeps")]
    return [command, *words]


def _of(chance, *kinds):
    return chance.choice(POOLS[chance.choice(kinds)])


def _word(command, chance):
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


def _setting(schema, chance):
    """A key of the command, and a value that is likely to be of its type, but not to be good."""
    key, field = chance.choice([pair for pair in keys(schema) if not is_dataclass(pair[1].type)])
    kinds = {int: "whole numbers", float: "numbers", bool: "words", str: "words"}
    kind = "lists" if get_origin(field.type) is list else kinds.get(field.type, "words")
    kind = "files" if "path" in field.metadata else kind
    if chance.random() < 0.2:
        kind = chance.choice(("whole numbers", "numbers", "words", "lists", "junk", "junk"))
    prefix = chance.choice(("+", "++", "~")) if chance.random() < 0.03 else ""
    return f"{prefix}{key}={_of(chance, kind)}"


def furnish(desk):
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


def run(words, desk):
    """Run a command line, and press Ctrl-C where it goes on; return its exit status."""

    def prepare():
        os.environ |= {"HOME": str(desk), "TMPDIR": str(desk.parent / "tmp")}
        # torch makes this folder when it imports its compiler.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(desk.parent / "compiled")
        tempfile.tempdir = None
        most = psutil.Process().memory_info().vms + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))

    patience = 5 if words[:1] == ["studio"] else 60
    return end_of(start(desk, words, prepare), patience, signal.SIGINT)


def judge_line(words, desk, before):
    """Run a command line; return its outcome and what it said. An outcome of FAULT says why."""
    status = run(words, desk)
    out, err = (Path(f"{desk}.{way}").read_text(errors="surrogateescape") for way in ("out", "err"))
    said = [line for line in re.split("[\r\n]+", err) if line.strip() and not PROGRESS.search(line)]
    after = files_in(desk)
    new = sorted(set(after) - set(before))
    made = [name for name in new if not RECORD.search(name)]
    told = "\n".join(said)
    outputs = [os.path.normpath(word.partition("=")[2]) for word in words if "output=" in word]
    if any(after.get(name, b"") != before[name] for name in before if name not in outputs):
        return "FAULT: changed or removed a file that was there", told
    left_over = [name for name in new if name.endswith((".tmp", ".lock"))]
    if left_over or any((desk.parent / "tmp").iterdir()):
        return f"FAULT: left a temporary file: {new}", told
    if strange := [line for line in said if not line.startswith(("error: ", "note: "))]:
        return f"FAULT: said {strange[:9]}", err[-3000:]
    errors = [line for line in said if line.startswith("error: ")]
    if status == 0:
        return _succeeded(words, out, errors, desk), told or out[-200:]
    if status == 128 + signal.SIGINT:
        return "stopped", told
    if status not in (1, 2) or not errors or (len(errors) > 1 and not SWEEP & set(words)):
        return f"FAULT: status {status} with {len(errors)} lines", told
    if new and not made and not OWN_FOLDER & set(words):
        return f"FAULT: failed and left {new}", told
    return "gave up" if made else "refused", told


def _succeeded(words, out, errors, desk):
    """Judge a line that ended with status 0."""
    if errors:
        return "FAULT: an error with status 0"
    looks = "--help|-h|--version|--cfg.*|-c|dry_run=.*"
    told = not words or words[0] not in SCHEMAS
    if told or any(re.fullmatch(looks, word) for word in words):
        return "done" if out.strip() else "FAULT: printed nothing"
    last = out.splitlines()[-1] if out else ""
    if SWEEP & set(words) and re.fullmatch(r"(\d+) of \1 jobs succeeded", last):
        return "done"
    return "done" if (desk / last).is_file() else f"FAULT: promised {last!r}"


def main(folder, count, seed=0, first=0):
    """Run so many command lines from the `first` on; return the number of faults."""
    warm_up()

    def unreachable(name):
        raise UserError(f"{name}'s weights cannot be downloaded (no route); use features=bundled")

    vgg.pretrained_state = unreachable
    counts: Counter[str] = Counter()
    for index in range(first, first + count):
        words, place = command_line(seed, index), folder / str(index)
        furnish(place / "desk")
        (place / "tmp").mkdir()
        outcome, said = judge_line(words, place / "desk", files_in(place / "desk"))
        counts[outcome.partition(":")[0]] += 1
        if outcome.startswith("FAULT"):
            print(f"line {index}: {words}\n  {outcome}\n  {said}", flush=True)
        (place / "desk/locked").chmod(0o700)
        shutil.rmtree(place)
    print(json.dumps(counts))
    return counts["FAULT"]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:])) > 0)
