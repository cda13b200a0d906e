"""The commands as a person runs them, from scripts/ in new processes, with default settings.

`.ci/environments.py` runs these tests in each environment; only sizes and steps are small.
"""

import json
import signal
import sys
from pathlib import Path

import pytest
from films.clips import pan
from helpers import ROOT, begun, needs, process, record_of, until

from styletransfer.pictures import images

# New processes import torch, so these tests are slow.
pytestmark = [pytest.mark.slow, pytest.mark.tour, pytest.mark.usefixtures("here")]
SMALL = ["size=48", "steps=3", "device=cpu"]


def run(name, *words):
    """Run scripts/NAME.py; assert that it succeeds without a warning, and return its output."""
    done = process(sys.executable, "-W", "error", str(ROOT / "scripts" / f"{name}.py"), *words)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout.splitlines()


def frames(count):
    """Write a folder with the frames of a short film, and return its name."""
    for number in range(count):
        images.write(f"frames/{number:02}.png", pan(number))
    return "frames"


def test_the_default_job_is_painted():
    *_, path = run("train", *SMALL)
    assert images.read(path).size == (32, 48)


def test_an_interrupted_run_is_resumed():
    words = ["size=48", "steps=40", "device=cpu", "hydra.run.dir=run"]
    first = begun(sys.executable, str(ROOT / "scripts" / "train.py"), *words, env=None)
    until(lambda: Path("run/metrics.jsonl").is_file())
    first.send_signal(signal.SIGINT)
    first.communicate()
    assert record_of("run")["status"] == "stopped"
    *_, path = run("train", "resume=run")
    assert images.read(path).size == (32, 48)
    assert record_of("run")["status"] == "finished"


def test_the_loss_modes_are_compared():
    told = "\n".join(run("compare", *SMALL, "rounds=1"))
    assert all(mode in told for mode in ("fake_backward", "loss_attribute", "tensor_hook"))


def test_a_network_paints_a_folder():
    run("apply", f"input={frames(2)}", "output=painted", "device=cpu")
    assert sorted(path.name for path in Path("painted").iterdir()) == ["00.png", "01.png"]


def test_a_film_is_painted():
    needs("video", "av", "cv2")
    from films.film_files import frames as frames_of

    run("film", f"content={frames(2)}", "fps=10", "output=painted.mp4", *SMALL)
    assert len(frames_of("painted.mp4")) == 2


def test_the_studio_sketches(here):
    needs("studio", "starlette")
    from studio.studios import Process

    studio = Process(here, "open=false")
    try:
        answer = studio.client.get("/api/look", params={"settings": json.dumps({}), "side": 2048})
        assert answer.status_code == 200, answer.text
        assert answer.content.startswith(b"\xff\xd8")  # a JPEG
    finally:
        studio.close()
