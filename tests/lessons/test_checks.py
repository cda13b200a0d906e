"""The checker of hand-written backwards fails wrong backwards and passes right ones."""

import pytest
from comparing import case_of, written_functions
from torch.autograd import Function

from styletransfer.lessons.checks import cases, check

pytestmark = pytest.mark.usefixtures("seeded")


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
