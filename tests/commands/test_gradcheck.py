import subprocess
import sys

import pytest
import torch
from helpers import ROOT
from torch import Tensor

from styletransfer.commands.gradcheck import command
from styletransfer.lessons.cases import cases
from styletransfer.lessons.checks import Case


def case_of(name: str, slope: float) -> Case:
    """x^2 whose backward says `slope` x."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: object, grad: Tensor) -> Tensor:
            return grad * slope * ctx.saved_tensors[0]

    x = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
    return Case(name, lambda x: Square.apply(x), (x,))


def test_a_wrong_backward_shows_in_table_and_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [case_of("right", 2.0), case_of("wrong", 1.0)]
    for one in chosen:
        monkeypatch.setattr(command, "cases", lambda seed, one=one: [one])
        assert command.main([]) == (1 if one.name == "wrong" else 0)
        printed = capsys.readouterr().out
        assert ("FAILED" in printed) is (one.name == "wrong")
        assert ("1 of 1 checks passed" in printed) is (one.name == "right")


def test_the_seed_chooses_where_to_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds: list[int] = []

    def chosen(seed: int) -> list[Case]:
        seeds.append(seed)
        return []

    monkeypatch.setattr(command, "cases", chosen)
    assert command.main(["--seed", str(2**63 - 1)]) == 0
    assert command.main([]) == 0
    assert seeds == [2**63 - 1, 0]


@pytest.mark.parametrize("seed", ["-1", "half", str(2**63), "9" * 30])
def test_a_seed_that_torch_does_not_take_is_refused_in_one_line(
    seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command.main([f"--seed={seed}"])
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert said == f"error: argument --seed: {seed!r} must be a whole number from 0 to 2^63 - 1\n"


def test_script_as_a_person_runs_it() -> None:
    script = [sys.executable, "scripts/gradcheck.py"]
    done = subprocess.run(
        script, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for name in {case.name for case in cases()}:
        assert name in done.stdout
    assert f"{len(cases())} of {len(cases())} checks passed" in done.stdout
    assert "Why float32 fails" in done.stdout
