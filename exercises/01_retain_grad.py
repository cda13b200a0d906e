"""Exercise 1: a gradient in the middle.

e = (a + b) d. Return the gradient of e with respect to c = a + b, which is no leaf. a, b and d
have to get their gradients as well. To read: docs/course/graph.md
"""

from styletransfer.lessons.exercises import call, check, equal, hint, leaf


def gradient_of_c(a, b, d):
    """Return de/dc. (Something is missing here.)"""
    c = a + b
    e = c * d
    e.backward()
    return c.grad


def test():
    a, b, d = leaf(2), leaf(3), leaf(4)
    found = call(gradient_of_c, a, b, d)
    hint(
        found is None,
        "c.grad is None: c is no leaf, so its gradient is passed on and dropped. Ask for it before "
        "backward.\n(retain_graph keeps what nodes have saved; it keeps no gradient.)",
    )
    hint(
        d.grad is None,
        "The gradient of c is there, but a, b and d have none. torch.autograd.grad returns a "
        "gradient, and fills the .grad of no leaf;\nbackward fills those of all leaves.",
    )
    hint(
        a.grad is None,
        "The gradient of c is there, but a.grad is None: the path from c to a has been cut. "
        "c must stay the result of a + b.",
    )
    equal(found, [4], "The gradient of c")
    equal((a.grad, d.grad), [[4], [5]], "The pair of a.grad and d.grad")


if __name__ == "__main__":
    check(test)
