"""Command lines that a person, a script or a cat on the keyboard may type, for every command.

Each is, by its seed, a tiny job that would succeed, and one to three words that may break it.
"""

import json
import random
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_origin

from styletransfer.config.commands import SCHEMAS
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
    kind: [
        "x" * 300 if word == "x*300" else "9" * 5000 if word == "9*5000" else word for word in pool
    ]
    for kind, pool in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}


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
    if kind < 0.86:
        return _of(chance, "hydra")
    if kind < 0.91:
        return _of(chance, "flags")
    if kind < 0.96:
        return _of(chance, "resume") if command in ("train", "explain") else _of(chance, "sweeps")
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
