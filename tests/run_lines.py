"""Run random command lines and judge how each ends: `python tests/run_lines.py FOLDER COUNT`.

A line is a tiny job that would succeed, plus one to three words that may break the job. Within a
limit of time and memory, the process must succeed and leave the file that it prints last, or fail
with one line and leave no new file. The script prints each line that does neither.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import sys
from collections import Counter
from dataclasses import is_dataclass
from pathlib import Path

import psutil
from galleries import make_run
from hard_runs import end_of, start, warm_up
from helpers import LAYERS, ROOT, files_in, write_pictures

from styletransfer.errors import UserError
from styletransfer.features import vgg
from styletransfer.networks import LAYOUTS, StyleNetwork, file
from styletransfer.settings.commands import SCHEMAS
from styletransfer.settings.schemas import keys

RUN = ["experiment=tiny", "content=content.png", "style=style.png", "steps=2", "scales=1"]
CROPS = ["pictures=null", "steps=2", "batch=1", "crop=16", "style_size=40", "device=cpu"]
# Command -> arguments of a very short run.
TINY = {
    "train": RUN,
    "compare": [*RUN, "rounds=1"],
    "explain": RUN,
    "mix": ["run", "strength=0.5"],
    "train_network": ["style=style.png", "preview=content.png", "network=tiny", *LAYERS, *CROPS],
    "apply": ["network=network.safetensors", "input=content.png", "output=painted.png"],
    "export": ["network=network.safetensors", "output=net.onnx"],
    "film": [*RUN, "frame_steps=1", "output=painted.mp4"],
    "gallery": ["painted"],
}
# Kind of word -> the words. "x*300" stands for 300 times x.
POOLS: dict[str, list[str]] = {
    kind: [{"x*300": "x" * 300, "9*5000": "9" * 5000}.get(word, word) for word in pool]
    for kind, pool in json.loads((ROOT / "tests/command_lines.json").read_text("utf-8")).items()
}
MEMORY = 3 * 2**30  # bytes of address space that a line may add
PROGRESS = re.compile(r"(step|frame)/s|s/(step|frame)|\d+/\d+ \[")
# Files that Hydra writes, and logs.
RECORD = re.compile(r"(^|/)(\.hydra/[a-z]+\.yaml|multirun\.yaml|[a-z_]+\.log)$")
SWEEP = {"-m", "--multirun", "hydra.mode=MULTIRUN"}


def command_line(seed, index):
    """Return one command line without the program's name; line 0 has no broken word."""
    chance = random.Random(f"{seed} {index}")
    command = chance.choice(["train"] * 8 + list(TINY)) if index else "train"
    words = [command, *TINY[command]]
    for _ in range(chance.choice((1, 1, 2, 3)) if index else 0):
        words.append(_word(SCHEMAS[command], chance))
    if chance.random() < 0.1 and index:
        words += [chance.choice(sorted(SWEEP)), chance.choice(POOLS["sweeps"])]
    return words


def _word(schema, chance):
    """Return a word: mostly KEY=VALUE, with a value of the key's type or an invalid one."""

    def of(*kinds):
        return chance.choice(POOLS[chance.choice(kinds)])

    kind = chance.random()
    if kind < 0.08:
        return f"{of('groups')}={of('presets')}"
    if kind < 0.28:
        return of("hydra", "flags", "resume", "junk")
    key, field = chance.choice([pair for pair in keys(schema) if not is_dataclass(pair[1].type)])
    likely = {int: "whole numbers", float: "numbers", list[str]: "lists", list[float]: "lists"}
    value = "files" if "path" in field.metadata else likely.get(field.type, "words")
    return f"{key}={of(value, value, value, 'junk')}"


def furnish(desk):
    """Write the valid and invalid files that command lines name."""
    names = ("content.png", "style.png", "été (1)=[a,b].png")
    write_pictures(*(desk / name for name in names), height=40, width=48)
    (desk / "truncated.png").write_bytes((desk / "content.png").read_bytes()[:500])
    for name in ("text.jpg", "text.pth", "empty.png", "empty.safetensors"):
        (desk / name).write_text("hello" * name.startswith("text"))
    for name in ("folder", "folder.pth", "my/experiment"):
        (desk / name).mkdir(parents=True)
    (desk / "my/experiment/broken.yaml").write_text("a: [1,\n")
    make_run(desk / "painted/0", {"size": 16})
    (desk / "locked").mkdir(mode=0o500)
    os.mkfifo(desk / "fifo")
    (desk / "loop.png").symlink_to("loop.png")
    file.write(desk / "network.safetensors", StyleNetwork(LAYOUTS["tiny"], 2), ["oil", "wash"])


def judge_line(words, desk):
    """Run a command line; return its outcome, which begins with FAULT if it is wrong."""

    def prepare():
        os.environ["HOME"] = str(desk)
        most = psutil.Process().memory_info().vms + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))

    before = files_in(desk)
    status = end_of(start(desk, words, prepare), 60, signal.SIGINT)
    out, err = (Path(f"{desk}.{way}").read_text(errors="surrogateescape") for way in ("out", "err"))
    lines = [
        line for line in re.split("[\r\n]+", err) if line.strip() and not PROGRESS.search(line)
    ]
    errors = [line for line in lines if line.startswith("error: ")]
    after = files_in(desk)
    new = sorted(after.keys() - before)
    outputs = [os.path.normpath(word.partition("=")[2]) for word in words if "output=" in word]
    if any(after.get(name, b"") != before[name] for name in before if name not in outputs):
        return "FAULT: changed or removed a file"
    if any(name.endswith(".tmp") for name in new):
        return f"FAULT: left {new}"
    if strange := [line for line in lines if not line.startswith(("error: ", "note: "))]:
        return f"FAULT: printed {strange[:9]}"
    if status == 0:
        last = out.splitlines()[-1] if out else ""
        told = any(re.fullmatch("--help|-h|--cfg.*|-c|dry_run=.*", word) for word in words)
        swept = SWEEP & set(words) and re.fullmatch(r"(\d+) of \1 jobs succeeded", last)
        done = not errors and (told or swept or (desk / last).is_file())
        return "done" if done else f"FAULT: status 0 after {errors}, and named {last!r}"
    if status == 128 + signal.SIGINT:
        return "stopped"
    if status not in (1, 2) or not errors or (len(errors) > 1 and not SWEEP & set(words)):
        return f"FAULT: status {status} with {errors}"
    if all(RECORD.search(name) for name in new) and "hydra.run.dir=." not in words and new:
        return f"FAULT: failed and left {new}"
    return "gave up" if new else "refused"


def main(folder, count, seed=0):
    """Run command lines, and return the number of faults."""
    warm_up()

    def unreachable(name):
        raise UserError(f"{name}'s weights cannot be downloaded (no route); use features=bundled")

    vgg.pretrained_state = unreachable
    counts: Counter[str] = Counter()
    for index in range(count):
        words, desk = command_line(seed, index), folder / str(index) / "desk"
        furnish(desk)
        outcome = judge_line(words, desk)
        counts[outcome.partition(":")[0]] += 1
        if outcome.startswith("FAULT"):
            print(f"line {index}: {words}\n  {outcome}", flush=True)
        (desk / "locked").chmod(0o700)
        shutil.rmtree(desk.parent)
    print(json.dumps(counts))
    return counts["FAULT"]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:])) > 0)
