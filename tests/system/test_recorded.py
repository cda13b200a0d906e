"""The stand-in for a CUDA graph repeats what was recorded, and refuses what CUDA refuses."""

import pytest
import torch
from recorded import recorded


def test_a_replay_repeats_operations_on_the_same_memory():
    picture, total, calls = torch.tensor([1.0, 2.0]), torch.zeros(1), []

    def work():
        calls.append(len(calls) + 1)
        doubled = torch.empty(2).copy_(picture).mul_(2)  # in place, and below in a view
        doubled.view(2, 1)[0] += calls[-1]
        total.add_(doubled.sum())
        return doubled.unbind()

    replay, outputs = recorded("cpu", work)
    assert total == 7  # the second call was recorded, not made
    assert all(output.isnan() for output in outputs)
    picture.copy_(torch.tensor([3.0, 4.0]))
    replay()
    assert (torch.stack(outputs).tolist(), total, calls) == ([8, 8], 23, [1, 2])


def test_gradients_are_those_of_the_picture_in_memory():
    picture = torch.tensor([1.0, 2.0])

    def work():
        leaf = picture.detach().requires_grad_()
        leaf.square().sum().backward()
        return (leaf.grad,)

    replay, (gradient,) = recorded("cpu", work)
    for values in ([3.0, 4.0], [5.0, 6.0]):
        picture.copy_(torch.tensor(values))
        replay()
        assert gradient.tolist() == [2 * value for value in values]


def test_memory_that_is_freed_or_replaced_is_noticed():
    kept = {"one": torch.ones(1), "two": torch.ones(1)}
    replay, (output,) = recorded("cpu", lambda: (kept["one"] + kept["two"],))
    replay()
    earlier, kept["one"] = kept["one"], torch.zeros(1)
    replay()
    assert (output, earlier) == (2, 1)
    kept["two"].data = torch.zeros(1)
    with pytest.raises(RuntimeError, match="freed after the capture"):
        replay()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "work",
    [lambda x: x[0].item(), torch.nonzero, lambda x: x[x > 0], lambda x: x[0] > 0 or x],
    ids=["item", "nonzero", "mask", "branch"],
)
def test_no_capture_waits_for_the_cpu(work, device, gpu):
    x = torch.ones(2, device=device)
    with pytest.raises(RuntimeError, match="cannot wait"):
        recorded(device, lambda: work(x))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda x: x.cpu(), "cannot wait"),
        (lambda x: x * torch.tensor(2.0, device="cuda"), "cannot copy"),
        (lambda x: x.copy_(torch.ones(2)), "cannot copy"),
        (lambda x: x[torch.tensor([0])], "cannot copy"),
    ],
    ids=["to the cpu", "to the gpu", "into a tensor", "an index"],
)
def test_no_capture_copies_between_cpu_and_gpu(work, words):
    x = torch.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match=words):
        recorded("cuda", lambda: work(x))


@pytest.mark.usefixtures("gpu")
def test_a_number_of_the_cpu_stays_as_it_was():
    x, factor = torch.ones(1, device="cuda"), torch.tensor(2.0)
    replay, (output,) = recorded("cuda", lambda: (x * factor,))
    factor.fill_(5)
    replay()
    assert output.item() == 2
