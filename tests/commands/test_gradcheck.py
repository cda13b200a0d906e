"""The command `gradcheck`: its tables, its exit status, and a refused argument."""

from unittest.mock import Mock

from comparing import case_of
from helpers import refusal

from styletransfer.commands import gradcheck


def test_a_wrong_backward_shows_in_table_and_exit_status(monkeypatch, capsys):
    right = case_of(lambda grad, x: grad * 2 * x, "right")
    wrong, again = (case_of(lambda grad, x: grad * x, "wrong") for _ in range(2))
    in_float32 = Mock(side_effect=gradcheck.check_in_float32)
    monkeypatch.setattr(gradcheck, "check_in_float32", in_float32)
    for cases, status, counted in [([right], 0, "1 of 1"), ([right, wrong, again], 1, "1 of 3")]:
        monkeypatch.setattr(gradcheck, "cases", lambda cases=cases: cases)
        assert gradcheck.main([]) == status
        printed = capsys.readouterr().out
        assert printed.count("FAILED") == len(cases) - 1
        assert printed.count("(3,) note") == len(cases)
        assert f"{counted} checks passed" in printed
        assert ("5.0e-01" in printed) is bool(status)
    # The first case of each function.
    checked = [id(call.args[0]) for call in in_float32.call_args_list]
    assert checked == [id(case) for case in (right, right, wrong)]


def test_an_unknown_argument_is_refused_in_one_line(capsys):
    refused = refusal(capsys, "--steps=0", run=gradcheck.main)
    assert refused == "error: unrecognized arguments: --steps=0"
