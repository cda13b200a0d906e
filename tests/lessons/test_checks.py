"""The checker of hand-written backwards, and its command `gradcheck`."""

import pytest
import torch
from comparing import written_functions
from helpers import call, refusal
from torch.autograd import Function

from styletransfer.lessons import checks
from styletransfer.lessons.checks import Case, cases, check

pytestmark = pytest.mark.usefixtures("seeded")


def case_of(slope, name="square"):
    """Return a Case for x^2 at three values, whose backward returns `slope(grad_output, x)`."""

    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            return slope(grad_output, *ctx.saved_tensors)

    x = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
    return Case(name, Square.apply, (x,), "note")


@pytest.mark.slow
def test_every_function_passes():
    checked = set()
    for case in cases():
        assert (case.name, case.shapes, check(case)) == (case.name, case.shapes, "")
        result = case.function(*case.inputs)
        last = [x for x in (result if isinstance(result, tuple) else (result,)) if x.requires_grad]
        checked.add(last[-1].grad_fn.name().removesuffix("Backward"))
    # FedTap is left out: it adds a gradient that is not of its forward.
    assert {"MaxPoolFunction", "MomentsTap"} < {*written_functions()} - {"FedTap"} <= checked


def test_every_function_of_the_package_has_a_setup_context():
    for function in written_functions().values():
        assert function.setup_context is not Function.setup_context


@pytest.mark.parametrize(
    "slope",
    [
        lambda grad, x: grad * x,
        lambda grad, x: grad * 2 * x * (1 + 1e-5),  # gradcheck's own tolerance is 1e-3
        lambda grad, x: 2 * x,  # without the chain rule
        lambda grad, x: grad * float("nan"),
        lambda grad, x: grad * 2 * (x + (x.detach() - x)),  # wrong second derivatives
        lambda grad, x: grad * 2 * (x + 1e-5 * (x.detach() - x)),
    ],
)
def test_a_wrong_backward_is_caught(slope):
    assert "mismatch" in check(case_of(slope))


def test_a_wrong_backward_shows_in_table_and_exit_status(monkeypatch, capsys):
    right = case_of(lambda grad, x: grad * 2 * x, "right")
    wrong, again = (case_of(lambda grad, x: grad * x, "wrong") for _ in range(2))
    for given, status, counted in [([right], 0, "1 of 1"), ([right, wrong, again], 1, "1 of 3")]:
        monkeypatch.setattr(checks, "cases", lambda given=given: given)
        ended, (printed, _) = call(capsys, "gradcheck")
        assert ended == status
        assert printed.count("FAILED") == len(given) - 1
        assert printed.count("(3,) note") == len(given)
        assert f"{counted} checks passed, to 1e-06." in printed


def test_gradcheck_has_help_and_no_key(capsys):
    assert call(capsys, "gradcheck", "--help")[1].out.startswith("styletransfer gradcheck ")
    assert refusal(capsys, "gradcheck", "steps=0") == "error: unknown key steps; see --help"
