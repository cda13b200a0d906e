import torch
from torch import Tensor

from styletransfer.commands import gradcheck
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
    return Case(name, lambda x: Square.apply(x), (x,), "note")


def test_a_wrong_backward_shows_in_table_and_exit_status(monkeypatch, capsys):
    right, wrong, again = case_of("right", 2.0), case_of("wrong", 1.0), case_of("wrong", 1.0)
    in_float32: list[Case] = []
    check = gradcheck.check_in_float32
    monkeypatch.setattr(
        gradcheck, "check_in_float32", lambda case: in_float32.append(case) or check(case)
    )
    for cases, status, counted in [([right], 0, "1 of 1"), ([right, wrong, again], 1, "1 of 3")]:
        monkeypatch.setattr(gradcheck, "cases", lambda seed, cases=cases: cases)
        assert gradcheck.main([]) == status
        printed = capsys.readouterr().out
        assert printed.count("FAILED") == len(cases) - 1
        assert printed.count("(3,) note") == len(cases)
        assert f"{counted} checks passed" in printed
        assert ("5.0e-01" in printed) is bool(status)
    # The first case of each function.
    assert [id(case) for case in in_float32] == [id(case) for case in (right, right, wrong)]


def test_the_seed_chooses_where_to_check(monkeypatch):
    seeds: list[int] = []
    monkeypatch.setattr(gradcheck, "cases", lambda seed: seeds.append(seed) or [])
    assert gradcheck.main(["--seed", str(2**63 - 1)]) == gradcheck.main([]) == 0
    assert seeds == [2**63 - 1, 0]
