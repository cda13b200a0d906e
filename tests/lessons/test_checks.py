"""The derivatives of the package's hand-written backwards, by gradcheck."""

import pytest
import torch
from comparing import written_functions
from lessons.cases import cases
from torch.autograd import Function, gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("seeded")

# Far above the rounding errors of quotients in float64, about 1e-10, and far below the difference
# that a wrong term makes. gradcheck's own is 1e-3.
TOLERANCE = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_derivatives_are_those_of_forward(name):
    function, inputs = cases()[name]
    # Before torch 2.14, vmap refuses the second derivative of torch's max pool if the map is
    # channels_last.
    is_batched = torch.__version__ >= "2.14" or name != "max_pool, channels_last"
    settings = {"atol": TOLERANCE, "rtol": TOLERANCE, "check_batched_grad": is_batched}
    assert gradcheck(function, inputs, **settings)
    assert gradgradcheck(function, inputs, **settings)


def test_every_function_is_checked():
    checked = set()
    for function, inputs in cases().values():
        result = function(*inputs)
        last = [x for x in (result if isinstance(result, tuple) else (result,)) if x.requires_grad]
        checked.add(last[-1].grad_fn.name().removesuffix("Backward"))
    # FedTap is left out: it adds a gradient that is not of its forward.
    assert {"MaxPoolFunction", "MomentsTap"} < {*written_functions()} - {"FedTap"} <= checked


def test_every_function_of_the_package_has_a_setup_context():
    for function in written_functions().values():
        assert function.setup_context is not Function.setup_context
