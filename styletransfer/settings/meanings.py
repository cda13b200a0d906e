"""What each key means, from the docstrings of the schemas."""

import ast
import inspect
from typing import Any


def meanings(schema: type[Any]) -> dict[str, str]:
    """Return key -> the text under it in a dataclass and its bases, on one line."""
    found: dict[str, str] = {}
    for base in reversed(schema.__mro__[:-1]):
        (cls,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(cls, ast.ClassDef)
        for key, text in zip(cls.body, cls.body[1:], strict=False):
            match key, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    found[name] = " ".join(said.split())
    return found
