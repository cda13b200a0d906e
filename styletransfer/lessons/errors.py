"""The text of an error, in one line."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()


def described(error: BaseException) -> str:
    """Return an error's type and the first line of its text; of one that torch.compile wraps."""
    error = getattr(error, "inner_exception", error)
    return f"{type(error).__name__}: {first_line(error)}"
