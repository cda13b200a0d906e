"""The doctor: `styletransfer gradcheck target=FILE.py:NAME`."""

import inspect
import re
import runpy

import pytest
import torch
from helpers import ROOT, call, refusal
from lessons import planted
from lessons.cases import cases
from lessons.right import RIGHT, fixed, sinh
from lessons.written import WRITTEN
from torch import nn

from styletransfer.lessons.doctor.elsewhere import whose
from styletransfer.lessons.doctor.examine import PROBES, examine, load
from styletransfer.lessons.doctor.quotients import weights_like
from styletransfer.lessons.doctor.study import Study
from styletransfer.lessons.doctor.verdicts import Verdict
from styletransfer.lessons.doctor.watch import is_function

QUICK = {name: probe for name, probe in PROBES.items() if "compile" not in name}
# The probes that torch refuses for a Function whose forward takes ctx: such a Function has no
# setup_context, which torch.func needs.
REFUSED = ("func.jvp", "func.grad", "vmap of func.grad")
FILE = ROOT / "tests" / "lessons" / "planted.py"


def verdicts(target, *inputs, probes=QUICK):
    """Return name -> verdict, without those that are "ok"; a target may have inputs of its own."""
    inputs = inputs or getattr(target, "inputs", (fixed(4, 3),))
    found = examine(Study(target, inputs), probes)
    return {name: verdict for name, verdict in found if verdict.word != "ok"}


def verdict(target, row, *inputs):
    """Return what one row says; the inputs are those of `verdicts`."""
    study = Study(target, inputs or getattr(target, "inputs", (fixed(4, 3),)))
    return dict(examine(study, {row: PROBES[row]} if row in PROBES else {}))[row]


def faults(*arguments, **options):
    """Return name -> text of each fault."""
    found = verdicts(*arguments, **options)
    return {name: each.text for name, each in found.items() if each.word == "FAULT"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "name", "words"),
    [
        ("WrongFactor", "first derivative", "is 1.0005 times the derivative of forward"),
        ("WrongHalves", "first derivative", "not the derivative of forward"),
        ("SavedIntermediate", "second derivative", "may take what forward saves for a constant"),
        ("Marked", "second derivative", "once_differentiable does not always"),
        ("DetachedBackward", "second derivative", "wrong without an error"),
        ("SpoiledGrad", "changes in place", "changed in place"),
        ("SpoiledData", "changes in place", "changed in place"),
        ("Unmarked", "changes in place", "input 0 is changed in place and not marked"),
        ("Cycle", "kept for backward", "ctx.result is an output: a reference cycle"),
        ("Closure", "kept for backward", "a function on ctx keeps it, or the class"),
        ("OnClass", "kept for backward", "if forward is called twice before backward"),
        ("Larger", "first derivative", "if backward is called again: another result"),
        ("Emptied", "first derivative", "if backward is called again: 'EmptiedBackward' object"),
        ("DrawnAgain", "first derivative", "if backward is called again: another result"),
        ("Ignored", "first derivative", "backward ignores grad_output"),
        ("Absolute", "first derivative", "is not the derivative of forward (5 of 12 numbers; at"),
        (
            "MeanForSum",
            "first derivative",
            "input 1 is 0.25 times the derivative of forward: a mean",
        ),
        ("Negated", "first derivative", "is -1 times the derivative of forward: the sign"),
        ("NoConjugate", "first derivative", "is not the derivative of forward (6 of 6 numbers"),
        ("WrongSingle", "first derivative", "is not the derivative of forward"),
        ("ConstantLoss", "first derivative", "marked as non-differentiable changes"),
        ("LengthAtZero", "first derivative", "backward gives nan where"),
        ("Length", "extreme inputs", "nan for zero inputs in float32"),
        ("Overflowing", "extreme inputs", "nan for large inputs in float32"),
        ("Steps", "first derivative", "not the derivative of forward"),
        ("Unrecorded", "second derivative", "wrong without an error"),
        ("Dense", "layouts in memory", "strided inputs: another result"),
        ("Attribute", "kept for backward", "ctx.both is an input"),
        ("Dictionary", "kept for backward", "ctx.kept is an input"),
        ("Viewed", "layouts in memory", "strided grad_output: view size is not"),
        ("AlwaysDouble", "low precision", "float64 for input 0 of torch.float32"),
        ("Listed", "backward is called", "a list, has no graph"),
        ("WrongJvp", "func.jvp", "not the derivative of forward"),
        ("WithoutTangent", "func.jvp", "not the derivative of forward"),
        ("WrongBackward", "first derivative", "is 0.5 times the derivative of forward"),
        ("SummedShape", "gradients returned", "shape (4, 3) for input 1 of (3,)"),
        ("MissingGradient", "first derivative", "None for input 1"),
        ("WrongGated", "first derivative", "is 1.5 times the derivative of forward"),
        ("Frozen", "gradients returned", "if input 0 alone requires grad: unsupported operand"),
        ("OneForTwo", "backward is called", "incorrect number of gradients (expected 2, got 1)"),
    ],
)
def test_a_planted_fault_is_named(target, name, words):
    found = faults(getattr(planted, target))
    assert list(found) == [name]
    assert words in found[name]


@pytest.mark.parametrize("name", ["cut_off", "cut_beside"])
def test_a_cut_path_is_no_fault_of_a_backward(name):
    found = verdict(getattr(planted, name), "first derivative")
    assert "the derivative of forward" in found.text
    assert re.fullmatch(rf"planted.py:\d+, {name}: look for detach, .data, .+", found.change)


def test_the_wrong_one_of_two_functions_is_named():
    found = verdict(
        lambda x: planted.Square.apply(planted.WrongFactor.apply(x)), "first derivative"
    )
    assert "WrongFactor.backward" in found.change


@pytest.mark.parametrize(
    ("name", "row", "method"),
    [
        ("ViewedDoubled", "layouts in memory", "backward"),
        ("WrongJvp", "func.jvp", "jvp"),
        ("AlwaysDouble", "low precision", "backward"),
        ("SavedIntermediate", "second derivative", "backward"),
        ("Overflowing", "extreme inputs", "backward"),
        ("Measured", "on a GPU", "forward"),
        ("MeasuredBackward", "on a GPU", "backward"),
    ],
)
def test_the_guilty_one_of_two_functions_is_named(name, row, method):
    guilty = getattr(planted, name)
    beside = planted.Batched if row.startswith("func") else planted.Same
    found = verdict(lambda x: beside.apply(guilty.apply(x).mT).mT, row)
    assert re.match(rf"planted.py:\d+, {name}.{method}: ", found.change)


def test_a_right_function_is_not_blamed_for_what_stands_beside_it():
    found = verdict(planted.viewed_beside, "layouts in memory")
    assert re.match(r"planted.py:\d+, viewed_beside: use reshape", found.change)


@pytest.mark.parametrize(
    ("target", "name"),
    [("AttributeOfSetup", "kept for backward"), ("UnmarkedOfSetup", "changes in place")],
)
def test_the_method_that_fills_ctx_is_named(target, name):
    found = verdict(getattr(planted, target), name)
    assert re.match(rf"planted.py:\d+, {target}.setup_context: ", found.change)


@pytest.mark.parametrize("name", ["cut_off", "not_applied"])
def test_a_graph_without_a_function_is_noted(name):
    found = verdict(getattr(planted, name), "backward is called")
    assert (found.word, found.text[:27]) == ("note", "no Function is in the graph")


def test_a_function_of_a_constant_is_no_fault():
    found = verdict(planted.beside_a_constant, "backward is called")
    assert (found.word, found.text[:13]) == ("note", "Square 0 x: f")
    assert faults(planted.beside_a_constant) == {}


@pytest.mark.parametrize("module", [nn.Dropout(), nn.Embedding(5, 3, sparse=True)])
def test_a_random_or_sparse_module_of_torch_has_no_fault(module):
    given = torch.tensor([0, 3, 3]) if isinstance(module, nn.Embedding) else fixed(4, 3)
    assert faults(module, given) == {}


def test_a_detach_is_named_beside_a_harmless_intermediate():
    found = verdict(planted.HarmlessIntermediate, "second derivative")
    assert "detach nothing" in found.change


def test_a_jvp_is_not_compared_with_a_wrong_backward():
    assert list(faults(planted.BothWrong)) == ["first derivative", "func.jvp"]


def test_forwards_derivative_is_known_beside_a_wrong_backward():
    study = Study(planted.WrongBackward, (torch.randn(4, 3),))
    found = next(whose(lambda study: [2 * x * weights_like(x) for x in study.leaves], study))
    assert (found.word, found.text) == ("note", "forward's: your backward is not called")


def test_a_kink_at_an_input_is_told_and_no_fault():
    found = verdict(planted.Corner, "first derivative", torch.tensor([-1.0, 0.0, 2.0]))
    assert (found.word, found.text[:35]) == ("note", "at 1 numbers forward has a jump or ")


def test_a_modules_method_is_not_called():
    assert "never calls it" in verdict(planted.FakeLayer(), "backward is called").text


def test_a_refused_second_derivative_is_no_fault():
    found = verdict(planted.Guarded, "second derivative")
    assert (found.word, found.text) == ("note", "refused: Guarded has no second derivative")


def test_the_advice_on_once_differentiable_helps():
    advice = verdict(planted.Marked, "second derivative").change
    source = inspect.getsource(planted.Marked)
    if "replace @once_differentiable by" in advice:
        source = source.replace("    @once_differentiable\n", "")
    line = re.search("by `(.+)`", advice)[1].replace("...", "RuntimeError('refused')")
    advised = dict(vars(planted))
    exec(source.replace("grad_output):\n", f"grad_output):\n        {line}\n"), advised)
    found = verdict(advised["Marked"], "second derivative")
    assert (found.word, found.text) == ("note", "refused: refused")


RIGHT_ONES = (
    *("Square", "MarkedDirty", "Bias", "Gated", "Corner", "Rounded", "Single", "Log", "Acosh"),
    *("Fast", "Dropped", "Product", "Matmul", "CastMatmul", "Centered", "Row", "Measured"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT_ONES)
def test_right_functions_pass(name):
    assert faults(getattr(planted, name)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_what_people_write_gets_its_verdict(name):
    written = WRITTEN[name]
    target = written() if issubclass(written, nn.Module) else written
    study = Study(target, written.inputs, "", getattr(written, "surrogates", ()))
    found = {row: each for row, each in examine(study, QUICK) if each.word == "FAULT"}
    row, words, place = getattr(written, "fault", ("", "", ""))
    assert list(found)[:1] == [row][: bool(row)]
    assert not found or (words in found[row].text and place in found[row].change)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "row", "word", "words"),
    [
        (
            "Log",
            "inputs",
            "note",
            "forward gives nan or inf at the given numbers x: examined at |x|",
        ),
        ("Acosh", "inputs", "note", "examined at |x| + 1.5"),
        ("Single", "inputs", "note", "examined in float32 on cpu, as forward refuses float64"),
        ("Rounded", "first derivative", "note", "forward computes in float32: compared to 0.1 %"),
        ("Row", "gradients returned", "note", "sparse"),
        ("Matmul", "low precision", "note", "only backward refuses what autocast makes of forward"),
        ("Measured", "on a GPU", "note", "needs numbers on the host"),
        ("Square", "first derivative", "ok", ""),
        ("CastMatmul", "low precision", "ok", ""),
        ("Square", "on a GPU", "ok", ""),
    ],
)
def test_what_is_no_fault_has_one_row(name, row, word, words):
    found = verdict(getattr(planted, name), row)
    assert found.word == word
    assert words in found.text
    assert found.change if row == "low precision" and words else True


@pytest.mark.parametrize("name", ["Nowhere", "LengthAtZero", "Emptied", "DrawnAgain"])
def test_after_what_spoils_all_no_other_row_follows(name):
    assert len(verdicts(getattr(planted, name))) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="examines it on the GPU")
@pytest.mark.parametrize("name", ["OnCuda", "Nowhere"])
def test_what_cannot_be_examined_says_so(name, capsys):
    ended, (printed, _) = call(capsys, "gradcheck", f"target={FILE}:{name}")
    assert (ended, printed.splitlines()[-1]) == (1, "not examined")


@pytest.mark.parametrize("name", ["Steps", "Negated", "Absolute", "ConstantLoss", "WrongHalves"])
def test_a_derivative_may_differ_on_purpose(name):
    target = getattr(planted, name)
    assert (
        f"if that is meant, say surrogates=[{name}]" in verdict(target, "first derivative").change
    )
    found = dict(examine(Study(target, [fixed(4, 3)], "", [name]), QUICK))
    assert found["first derivative"] == Verdict("ok", f"not compared for {name}, as you say")
    assert [row for row, each in found.items() if each.word == "FAULT"] == []


def test_a_surrogate_hides_no_other_fault():
    for name in ("SpoiledGrad", "Ignored", "Emptied"):
        study = Study(getattr(planted, name), [fixed(4, 3)], "", [name])
        assert any(each.word == "FAULT" for _, each in examine(study, QUICK)), name


def test_the_wrong_one_beside_a_surrogate_is_named():
    def both(x):
        return planted.WrongFactor.apply(planted.Steps.apply(x))

    found = dict(examine(Study(both, [fixed(4, 3)], "", ["Steps"]), QUICK))
    assert "WrongFactor.backward" in found["first derivative"].change
    study = Study(
        lambda x: planted.Square.apply(planted.Steps.apply(x)), [fixed(4, 3)], "", ["Steps"]
    )
    assert all(each.word != "FAULT" for _, each in examine(study, QUICK))


def test_a_jvp_of_a_surrogate_may_be_that_of_its_backward():
    study = Study(planted.BothWrong, [fixed(4, 3)], "", ["BothWrong"])
    assert all(each.word != "FAULT" for _, each in examine(study, QUICK))


@pytest.mark.parametrize(
    "target",
    [planted.Keeper(planted.WrongReLU), nn.Sequential(planted.KEEPER), planted.through_a_keeper],
)
def test_what_a_module_keeps_is_examined(target):
    found = dict(examine(Study(target, [fixed(4, 3)]), QUICK))
    assert found["backward is called"].text == "WrongReLU 1 x"
    assert "WrongReLU.backward" in found["first derivative"].change
    assert "in Keeper.loss, where" in found["left on modules"].text
    assert "their graphs, which are examined" in found["left on modules"].text


@pytest.mark.parametrize("keeper", [planted.Keeper, planted.Appender])
def test_a_right_function_in_a_keeper_has_no_fault(keeper):
    assert faults(keeper(planted.Square)) == {}


def test_a_loss_in_a_list_of_a_module_is_examined():
    found = verdicts(planted.Appender(planted.WrongReLU))
    assert "WrongReLU.backward" in found["first derivative"].change
    assert "in Appender._losses, where they stay in memory, with" in found["left on modules"].text


def test_what_is_left_without_a_graph_is_told_once_it_is_new():
    found = verdict(planted.History(), "left on modules")
    assert found.text == "forward leaves tensors in History.seen, where they stay in memory"
    assert re.match(r"planted.py:\d+, History.forward: return them", found.change)
    assert verdict(nn.LSTM(3, 2), "left on modules").word == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Square", "Dropped", "Product", "Keeper", "Printing"])
def test_what_divides_a_compiled_graph_is_named(name):
    target = planted.KEEPER if name == "Keeper" else getattr(planted, name)
    found = verdict(target, "compile, one graph")
    line = inspect.getsourcelines(planted.Printing.forward)[1] + 2
    place = f"planted.py:{line}, Printing.forward: take this out of forward and backward"
    assert (found.word, found.change) == (("note", place) if name == "Printing" else ("ok", ""))


def test_equal_rows_of_the_table_are_one(capsys, monkeypatch):
    monkeypatch.setattr("styletransfer.lessons.doctor.examine.PROBES", QUICK)
    printed = call(capsys, "gradcheck", f"target={FILE}:Square")[1][0]
    assert printed.count("it needs a forward without ctx") == 1
    assert "func.jvp, func.grad, vmap of func.grad note  refused: " in printed


@pytest.mark.slow
def test_the_command_takes_what_is_meant(capsys, monkeypatch):
    monkeypatch.setattr("styletransfer.lessons.doctor.examine.PROBES", QUICK)
    words = "gradcheck", f"target={FILE}:Steps"
    assert call(capsys, *words)[0] == 1
    assert call(capsys, *words, "surrogates=[Steps]")[0] == 0
    assert "no Function, module or function 'Nobody'" in refusal(
        capsys, *words, "surrogates=[Nobody]"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_the_kinds_of_torchs_documentation_pass(name):
    assert faults(RIGHT[name]) == {}


def test_a_function_that_uses_one_output_alone_passes():
    assert faults(sinh, *RIGHT["Sinh"].inputs) == {}


@pytest.mark.parametrize("module", [nn.Linear(3, 2), nn.BatchNorm1d(3).eval()])
def test_modules_of_torch_pass(module):
    assert list(verdicts(module)) == ["backward is called"]  # a note


@pytest.mark.slow
@pytest.mark.parametrize(("function", "inputs"), cases().values(), ids=cases())
def test_the_functions_of_the_package_pass(function, inputs):
    assert faults(function, *inputs) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")  # torch's
def test_the_functions_of_the_examples_pass(capsys):
    inputs = {
        "ReLU": [(4, 3)],
        "Linear": [(4, 3), (2, 3), (2,)],
        "Pool": [(1, 2, 4, 4)],
        "MomentsTap": [(3, 8)],
        "Smooth": [(4, 3)],
        "Scale": [(4, 3), (3,)],
        "LogSumExp": [(4, 3)],
        "Kepler": [(4,)],
        "Sin": [(4, 3)],
        "Cos": [(4, 3)],
        "Once": [(4, 3)],
        "ContentTap": [(1, 3, 2, 2), (1, 3, 2, 2)],
        "StyleTap": [(1, 3, 2, 2), (3, 3)],
        "Square": [(3,)],
        "Rows": [(5, 2)],
    }
    found = runpy.run_path(str(ROOT / "docs" / "examples" / "autograd_function.py"))
    script = runpy.run_path(str(ROOT / "docs" / "download.py"))["script"]
    page = {"__name__": "__main__"}
    with torch.random.fork_rng(devices=[]):
        exec(script(ROOT / "docs" / "course" / "functions.md"), page)
    functions = {name: each for name, each in (found | page).items() if is_function(each)}
    meant = {"Sign", "Reverse"}  # their derivative differs on purpose
    assert {*inputs} == {*functions} - {"Function", "function", "WrongReLU"} - meant
    for name, shapes in inputs.items():
        generator = torch.Generator().manual_seed(0)
        dtype = torch.complex64 if name == "Square" else torch.float32
        given = [
            torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True)
            for shape in shapes
        ]
        if name in ("ContentTap", "StyleTap"):
            given[1].requires_grad_(False)  # the target
        if name == "Rows":
            given.append(torch.tensor([1, 3, 1]))
        assert faults(functions[name], *given) == {}, name


@pytest.mark.slow
def test_a_checkpoint_in_a_module_is_examined_and_leaves_it_as_it_was():
    module = planted.Checkpointed()
    before = {name: x.detach().clone() for name, x in module.named_parameters()}
    found = verdicts(module)
    assert [row for row, each in found.items() if each.word == "FAULT"] == []
    after = dict(module.named_parameters())
    assert all(torch.equal(x, after[name]) for name, x in before.items())
    assert all(x.requires_grad and x.dtype == torch.float32 for x in after.values())


def test_a_gradient_in_float32_for_half_precision_is_no_fault():
    assert verdict(planted.Widened, "low precision").word == "ok"


def test_a_constant_sparse_input_is_taken():
    assert faults(planted.Sparse) == {}
    assert list(faults(planted.WrongSparse)) == ["first derivative"]
    assert verdict(planted.Sparse, "on a GPU").word == "ok"


def test_a_spoiled_grad_output_is_told_before_what_it_spoils():
    def beside(x):
        return planted.SpoiledDouble.apply(x) + x

    found = faults(beside)
    assert list(found)[:2] == ["changes in place", "first derivative"]


def test_a_modules_parameters_are_checked():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.randn(3))

        def forward(self, x):
            return planted.MissingGradient.apply(x, self.bias)

    assert "None for input 1" in verdict(Scaled(), "first derivative").text


def test_a_right_module_with_a_parameter_and_a_buffer_passes():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 3))
            self.register_buffer("shift", torch.randn(4, 3))

        def forward(self, x):
            return planted.RightJvp.apply(x * self.weight + self.shift)

    found = {name: each.text for name, each in verdicts(Layer()).items()}
    assert found == {"vmap of func.grad": "refused: it needs a vmap, or generate_vmap_rule = True"}


def test_a_file_may_have_a_dataclass(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Settings:\n    weight: float = 2\n"
        "def double(x):\n    return Settings().weight * x\n",
        encoding="utf-8",
    )
    assert load(f"{path}:double", ["3"]).call(1) == 2


def test_the_table_names_the_line_and_the_exit_status_tells(capsys, monkeypatch):
    monkeypatch.setattr("styletransfer.lessons.doctor.examine.PROBES", QUICK)
    ended, (printed, _) = call(capsys, "gradcheck", f"target={FILE}:WrongFactor")
    assert ended == 1
    assert re.search(r"change: planted\.py:\d+, WrongFactor\.backward: ", printed)
    ended, (printed, _) = call(capsys, "gradcheck", f"target={FILE}:Bias", "inputs=[4x3,3]")
    assert (ended, printed.splitlines()[-1]) == (0, "no fault")


def test_a_wrong_target_is_refused_in_one_line(capsys):
    for words, said in [
        (f"target={FILE}:Nobody", "has no Function, module or function 'Nobody'"),
        ("target=nowhere.py:A", "give FILE.py:NAME of a file that is there"),
        (f"target={FILE}", "give FILE.py:NAME"),
    ]:
        assert said in refusal(capsys, "gradcheck", words)
    assert "give FILE.py:NAME" in refusal(capsys, "gradcheck")
    words = "gradcheck", f"target={FILE}:Square", "inputs=[sized]"
    assert "inputs=sized cannot be called without arguments" in refusal(capsys, *words)


@pytest.mark.slow
def test_the_page_shows_what_the_doctor_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "course" / "functions.md").read_text(encoding="utf-8")
    words, table = re.findall(r"^    styletransfer (.+)\n\n```text\n(.*?)^```$", page, re.M | re.S)[
        0
    ]
    ended, (printed, _) = call(capsys, *words.split())
    own = "24.0 by hand 48\nCube, with inputs 4x3\n"  # the file prints, too
    assert (ended, printed) == (1, own + table)
