"""The tiny model, trained with hand-written Functions and without; and `gradcheck`."""

import re
from collections import Counter
from unittest.mock import Mock

import pytest
import torch
from comparing import case_of, written_functions
from helpers import refusal

from styletransfer.commands import gradcheck, train_tiny


@pytest.fixture
def entered(monkeypatch):
    """Count how often autograd enters each hand-written backward, from now on."""
    counts: Counter[str] = Counter()
    for name, function in written_functions().items():

        def count(ctx, *grads, name=name, own=function.backward):
            counts[name] += 1
            return own(ctx, *grads)

        monkeypatch.setattr(function, "backward", staticmethod(count))
    return counts


def test_tiny_training_equals_autograds_over_50_steps(entered):
    built_in = train_tiny.train_tiny(handwritten=False)
    assert not entered
    handwritten = train_tiny.train_tiny(handwritten=True)
    assert entered == {"LinearFunction": 100, "ScaleFunction": 50, "ReLUFunction": 50}
    assert len(built_in.losses) == 50
    assert built_in.losses[-1] < 0.5 * built_in.losses[0]
    assert train_tiny.largest_difference(built_in, handwritten) <= 1e-12


def test_each_step_descends_along_its_own_gradient_alone():
    for handwritten in (False, True):
        torch.manual_seed(3)
        model = train_tiny.tiny_model(handwritten)
        x = torch.randn(train_tiny.BATCH, train_tiny.INPUTS, dtype=torch.float64)
        target = torch.stack([x.sin().sum(1), x.prod(1)], dim=1)
        for _ in range(4):
            loss = (model(x) - target).square().mean()
            slopes = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, slope in zip(model.parameters(), slopes, strict=True):
                    parameter -= train_tiny.LEARNING_RATE * slope
        before = torch.get_rng_state()
        trained = train_tiny.train_tiny(handwritten, seed=3, steps=4).parameters
        assert torch.equal(torch.get_rng_state(), before)
        torch.testing.assert_close(trained, dict(model.named_parameters()), rtol=1e-12, atol=1e-12)


def test_both_columns_and_the_difference_are_shown(monkeypatch, capsys):
    def training(handwritten, seed, steps):
        assert (seed, steps) == (4, 12)
        return train_tiny.Training([step + 0.5 * handwritten for step in range(steps)], {})

    monkeypatch.setattr(train_tiny, "train_tiny", training)
    train_tiny.main(["--steps", "12", "--seed", "4"])
    printed = capsys.readouterr().out
    rows = re.findall(r"│ +(\d+) │ +([\d.]+)0{14} │ +([\d.]+)0{14} │", printed)
    assert rows == [("1", "0.0", "0.5"), ("10", "9.0", "9.5"), ("12", "11.0", "11.5")]
    assert "Largest difference in any loss or final parameter: 5.0e-01" in printed


def test_bad_arguments_are_refused_in_one_line(capsys):
    for argument, message in (
        ("--steps=0", "--steps must be at least 1, not 0"),
        ("--seed=-1", "argument --seed: '-1' must be a whole number from 0 to 2^63 - 1"),
        (f"--seed={2**63}", f"argument --seed: '{2**63}' must be a whole number from 0 to"),
    ):
        said = refusal(capsys, argument, run=train_tiny.main)
        assert said.startswith(f"error: {message}")


def test_a_wrong_backward_shows_in_table_and_exit_status(monkeypatch, capsys):
    right = case_of(lambda grad, x: grad * 2 * x, "right")
    wrong, again = (case_of(lambda grad, x: grad * x, "wrong") for _ in range(2))
    in_float32 = Mock(side_effect=gradcheck.check_in_float32)
    monkeypatch.setattr(gradcheck, "check_in_float32", in_float32)
    for cases, status, counted in [([right], 0, "1 of 1"), ([right, wrong, again], 1, "1 of 3")]:
        monkeypatch.setattr(gradcheck, "cases", lambda seed, cases=cases: cases)
        assert gradcheck.main([]) == status
        printed = capsys.readouterr().out
        assert printed.count("FAILED") == len(cases) - 1
        assert printed.count("(3,) note") == len(cases)
        assert f"{counted} checks passed" in printed
        assert ("5.0e-01" in printed) is bool(status)
    # The first case of each function.
    checked = [id(call.args[0]) for call in in_float32.call_args_list]
    assert checked == [id(case) for case in (right, right, wrong)]


def test_the_seed_chooses_where_to_check(monkeypatch):
    seeds = []
    monkeypatch.setattr(gradcheck, "cases", lambda seed: seeds.append(seed) or [])
    assert gradcheck.main(["--seed", str(2**63 - 1)]) == gradcheck.main([]) == 0
    assert seeds == [2**63 - 1, 0]
