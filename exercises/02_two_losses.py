"""Exercise 2: two losses, two gradients.

Return the gradient of each loss with respect to the weight, not that of their sum.
To read: docs/course/graph.md
"""

import torch

from styletransfer.lessons.exercises import call, check, equal, hint, leaf


def gradients(weight):
    """Return the gradients of `first` and of `second`. (These do not come out yet.)"""
    square = weight * weight
    first, second = square.sum(), (3 * square).sum()
    first.backward()
    of_first = weight.grad
    second.backward()
    return of_first, weight.grad


def test():
    again = (
        "Both losses use weight * weight. The first pass has freed what that node saved, and the "
        "second needs it: the first has to keep the graph."
    )
    found = call(gradients, leaf(2), hints={"a second time": again})
    hint(
        any(isinstance(each, tuple) for each in tuple(found)),
        "torch.autograd.grad returns a tuple, with a gradient for each tensor that was asked for.",
    )
    is_pair = len(found) == 2 and all(isinstance(each, torch.Tensor) for each in found)
    hint(not is_pair, "Return two gradients, each a tensor.")
    hint(
        found[0] is found[1] and found[0].item() == 12,
        "weight.grad is one tensor, so that two names for it see the same numbers: zero_ has "
        "emptied the first gradient, too.\nKeep a clone of it, or set weight.grad to None.",
    )
    hint(
        [float(each) for each in found] == [16, 0],
        "weight.grad is one tensor: your name for the first gradient sees the sum 16, so that "
        "nothing is left of 16 - 16.\nKeep a clone of it, or look for a function that leaves .grad "
        "alone.",
    )
    hint(
        [each.item() for each in found] == [4, 16],
        "backward adds to weight.grad: 16 is 4 + 12. Empty it between the two, or look for a "
        "function that returns\ngradients and leaves .grad alone.",
    )
    hint(
        found[1].item() == 16,
        "backward adds to weight.grad: the second gradient, 12, was added to the first, 4. And "
        "weight.grad is one tensor,\nso that two names for it see the same sum. Look for a "
        "function that returns gradients and leaves .grad alone.",
    )
    equal(found, [[4], [12]], "The pair of gradients")


if __name__ == "__main__":
    check(test)
