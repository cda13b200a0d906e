"""`apply` on a folder in parts: equal bytes, one lock for each part, kills."""

import os
import random
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from helpers import (
    begun,
    call,
    check_error,
    files_in,
    picture,
    refusal,
    until,
    write_pictures,
)
from networks.archives import packed
from networks.nets import applying, write_network

from styletransfer.networks.apply import parts
from styletransfer.networks.apply.parts import of_part, part_locked
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.pictures import images

apply = applying("tree", "out")
NAMES = ("a.png", "b.jpg", "in/a.png", "in/c.png", "in/far/d.webp", "e.png")


@pytest.fixture(autouse=True)
def tree(here):
    """Write a network and a folder of pictures; return the folder that holds both."""
    write_network("oil", "wash")
    write_pictures(*(here / "tree" / name for name in NAMES), height=12, width=16)
    return here


def test_the_parts_are_the_whole_to_the_byte():
    apply(output="whole")
    made = []
    for part in range(3):
        apply(parts=3, part=part)
        made.append(files_in("out").keys())
    assert files_in("out") == files_in("whole")
    assert [len(one) for one in made] == sorted({len(one) for one in made})  # each adds some


def test_a_part_goes_on_by_itself():
    apply(parts=2, part=1)
    own = files_in("out")
    Path("out", min(own)).unlink()
    apply(parts=2, part=0)
    assert min(own) not in files_in("out")
    apply(parts=2, part=1)
    assert own.items() <= files_in("out").items()
    check_error("painted with another style; choose", partial(apply, parts=2, part=1, style="oil"))


def test_names_that_may_be_one_file_are_in_one_part():
    config = ApplyConfig(parts=5)
    for names in (("A.png", "a.png"), ("\u00e9.png", "e\u0301.png")):
        pairs = [(Path(name), Path("out", name)) for name in names]
        found = [of_part(replace(config, part=n), pairs, Path("out")) for n in range(5)]
        assert sorted(found) == [[], [], [], [], pairs]


@pytest.mark.parametrize(
    ("ours", "theirs"), [((2, 1), (2, 1)), ((2, 0), (1, 0)), ((1, 0), (2, 1)), ((2, 0), (3, 1))]
)
def test_what_could_collide_is_refused(ours, theirs, monkeypatch):
    """Check (parts, part) of two runs: one part twice, a part and the whole, two divisions."""
    monkeypatch.setattr(parts, "PATIENCE", 0)
    Path("out").mkdir()
    with part_locked(ApplyConfig(parts=theirs[0], part=theirs[1]), Path("out")):
        work = partial(apply, parts=ours[0], part=ours[1])
        check_error("another run is at work in out; wait for it", work)
    work()


def test_other_parts_do_not_wait_and_their_files_stay():
    Path("out").mkdir()
    Path("out/.0123456789abcdef.tmp").touch()
    with part_locked(ApplyConfig(parts=2, part=0), Path("out")):
        apply(parts=2, part=1)
    assert Path("out/.0123456789abcdef.tmp").exists()
    apply()
    assert not Path("out/.0123456789abcdef.tmp").exists()


def test_parts_are_the_jobs_of_a_sweep(capsys):
    words = ["apply", "network=net.safetensors", "input=tree", "output=out", "device=cpu"]
    status, printed = call(capsys, *words, "-m", "parts=2", "part=range(0,2)")
    assert (status, printed.out.splitlines()[-1]) == (0, "2 of 2 jobs succeeded")
    assert files_in("out").keys() == {*NAMES}
    assert "several jobs" in refusal(capsys, *words, "-m", "parts=2", "part=0,1", "size=12,16")


def test_parts_that_cannot_be_are_told():
    check_error("part=2 must be below parts=2; the first is 0", apply, parts=2, part=2)
    check_error("parts= is for a folder, and input=tree/a.png", apply, input="tree/a.png", parts=2)


@pytest.mark.slow
def test_parts_killed_at_random_end_in_equal_bytes(tree, request):
    """Kill one of two parts at a random moment, then go on; `--kills=50` makes 50."""
    for number in range(20):
        images.write(f"tree/{number}.png", picture(number, 200, 240))
    members = {f"{number}_png": Path(f"tree/{number}.png").read_bytes() for number in range(9)}
    packed(tree / "tree/s.tar", **members)
    words = "apply network=net.safetensors input=tree device=cpu parts=2"
    base = [sys.executable, "-m", "styletransfer", *words.split()]
    apply(output="whole", precision="auto")
    expected, one_thread = files_in("whole"), os.environ | {"OMP_NUM_THREADS": "1"}
    chance = random.Random(0)
    for number in range(request.config.getoption("--kills")):
        folder, command = tree / str(number), [*base, f"output={number}"]
        runs = [begun(*command, f"part={part}", env=one_thread) for part in range(2)]
        victim = chance.randrange(2)
        until(lambda: any(folder.rglob("*.*")) or runs[victim].poll() is not None)  # noqa: B023
        time.sleep(chance.random())
        runs[victim].kill()
        for run in runs:
            run.communicate()
        apply(output=str(number), precision="auto", parts=2, part=victim)
        made = files_in(folder)
        hidden = {name for name in made if Path(name).name.startswith(".")}
        assert {name: made[name] for name in made.keys() - hidden} == expected
