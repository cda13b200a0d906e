"""The command `gradcheck`: its table, its exit status, and a refused argument."""

from comparing import case_of
from helpers import call, refusal

from styletransfer.cli import script
from styletransfer.commands import gradcheck


def test_a_wrong_backward_shows_in_table_and_exit_status(monkeypatch, capsys):
    right = case_of(lambda grad, x: grad * 2 * x, "right")
    wrong, again = (case_of(lambda grad, x: grad * x, "wrong") for _ in range(2))
    for cases, status, counted in [([right], 0, "1 of 1"), ([right, wrong, again], 1, "1 of 3")]:
        monkeypatch.setattr(gradcheck, "cases", lambda cases=cases: cases)
        assert gradcheck.main([]) == status
        printed = capsys.readouterr().out
        assert printed.count("FAILED") == len(cases) - 1
        assert printed.count("(3,) note") == len(cases)
        assert f"{counted} checks passed, to 1e-06." in printed


def test_gradcheck_has_help_and_takes_no_argument(capsys):
    assert call(capsys, "gradcheck", "--help")[1].out.startswith("styletransfer gradcheck\n")
    refused = refusal(capsys, "--steps=0", run=script("gradcheck"))
    assert refused == "error: gradcheck takes no arguments; leave --steps=0 out"
