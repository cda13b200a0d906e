"""docs/once_differentiable.md: the program prints what the page says."""

import re

from helpers import ROOT

PAGE = (ROOT / "docs" / "once_differentiable.md").read_text(encoding="utf-8")


def test_the_report_on_once_differentiable_is_true(capsys):
    (program,), (printed,) = (
        re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S) for kind in ("python", "text")
    )
    exec(compile(program, "report.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == printed
