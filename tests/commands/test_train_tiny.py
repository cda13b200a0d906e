import re
import subprocess
import sys

import pytest
from helpers import ROOT

from styletransfer.commands.train_tiny import command
from styletransfer.lessons.tiny import Training, train_tiny


def test_both_columns_and_the_difference_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained: list[tuple[bool, int, int]] = []

    def training(handwritten: bool, seed: int, steps: int) -> Training:
        trained.append((handwritten, seed, steps))
        made = train_tiny(handwritten, seed, steps)
        return Training([loss + handwritten for loss in made.losses], made.parameters)

    monkeypatch.setattr(command, "train_tiny", training)
    command.main(["--steps", "12", "--seed", "4"])
    assert trained == [(False, 4, 12), (True, 4, 12)]
    printed = capsys.readouterr().out
    losses = train_tiny(handwritten=False, seed=4, steps=12).losses
    shown = re.findall(r"│ +(\d+) │ +([\d.]+) │ +([\d.]+) │", printed)
    assert shown == [
        (str(step), f"{losses[step - 1]:.15f}", f"{losses[step - 1] + 1:.15f}")
        for step in (1, 10, 12)
    ]
    assert "Largest difference in any loss or final parameter: 1.0e+00" in printed


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--steps=0", "--steps must be at least 1, not 0"),
        ("--seed=-1", "argument --seed: '-1' must be a whole number from 0 to 2^63 - 1"),
        (f"--seed={2**63}", f"argument --seed: '{2**63}' must be a whole number from 0 to"),
        ("--steps=half", "argument --steps: invalid int value: 'half'"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    argument: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command.main([argument])
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {message}")
    assert said.count("\n") == 1


def test_script_as_a_person_runs_it() -> None:
    script = [sys.executable, "scripts/train_tiny.py"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Largest difference .*: \d\.\de[-+]\d\d", done.stdout)
    assert "hand-written Functions" in done.stdout
