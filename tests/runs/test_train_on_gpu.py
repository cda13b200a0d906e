"""Every look, loss mode and control of `train` on a pretended GPU: no operation mixes devices."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pretended
import pytest
import torch
from helpers import MODES, ROOT, call, composed, picture, record_of, stop_after
from optimize.test_captured import refused
from recorded import recorded

from styletransfer import iterate, stylize
from styletransfer.copying import paired
from styletransfer.features.extractor import max_pool
from styletransfer.job import groups
from styletransfer.job.prepare import prepare
from styletransfer.objective import gradient_at
from styletransfer.optimize import run
from styletransfer.optimize.run import Run, objective_of
from styletransfer.pictures import images
from styletransfer.runs.commands.mix import MixConfig, mix
from styletransfer.runs.recipe import carried
from styletransfer.runs.resume import finished_picture
from styletransfer.train import paint

RANDOM = ["features=vgg19", "features.weights=random"]
TINY = [*RANDOM, "size=40", "steps=2", "device=cuda", "precision=float32"]
PRESETS = sorted(path.stem for path in (ROOT / "configs" / "experiment").glob("*.yaml"))
STYLES = "style=[style.png,content.png]"
MASK = "content_regions=mask.png"
pytestmark = pytest.mark.usefixtures("tiny_vgg", "gpu")


@pytest.fixture(autouse=True)
def desk(desk, monkeypatch):
    """Write pictures into the current folder."""
    monkeypatch.setattr(groups, "SIDE", 96)
    half = (torch.arange(32) > 15).float().expand(1, 3, 24, 32)
    images.write("mask.png", half)
    images.write("clear.png", picture(3, 24, 32), half[:, :1])
    return desk


def settings(*words):
    return composed("train", "content=content.png", "style=style.png", *TINY, *words)


def test_the_default_look():
    run = paint(settings(), Path("run"))
    assert (str(run.run.job.device), run.outcome.steps, run.outcome.problem) == ("cuda:0", 2, None)
    assert run.outcome.image.device.type == "cpu"


def test_a_painted_photograph_is_compared_where_the_network_is():
    config = settings("style_source=content.png")
    assert prepare(config, search=False).pictures.sources


def test_an_evaluation_without_match_losses_waits_for_nothing(gpu):
    job = prepare(settings("experiment=classic", "device=cuda"))
    pictures = job.full_size()
    objective = objective_of(job, pictures, None)
    gradient_at(objective, pictures.content)
    gpu.clear()
    gradient_at(objective, pictures.content)
    assert not gpu


def test_a_region_waits_for_nothing(gpu):
    job = prepare(settings("experiment=classic", STYLES, MASK, "region_styles={white:1,black:2}"))
    pictures = job.full_size()
    objective = objective_of(job, pictures, None)
    gpu.clear()
    gradient_at(objective, pictures.content)
    assert not gpu


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constants", "extreme", "words"),
    [
        ("losses.match.BLOCK objective.matching.BLOCK", 1, []),
        ("losses.moments.CHUNKS", 64, ["precision=bfloat16", "objective.style_loss=moments"]),
        ("losses.moments.CHUNKS", 64, ["precision=bfloat16", "objective.style_loss=moments", MASK]),
        ("copying.patches.BLOCK copying.copied.BLOCK", 1, ["style_source=content.png"]),
        ("pictures.color._STRIP", 50, ["experiment=classic", "color=style_palette"]),
    ],
    ids=["matches", "moments", "regions", "pixels", "colours"],
)
def test_blocks_of_the_cpu_are_none_of_a_gpu(constants, extreme, words, monkeypatch):
    """A GPU does the same operations, whatever the size of a block on the CPU is."""
    counts, usual = [], pretended.count
    monkeypatch.setattr(paired, "CONTENT_SIDE", 24)  # so that pixels are matched at full size, too
    monkeypatch.setattr(pretended, "count", lambda *given: done.append(usual(*given)))
    for _ in range(2):
        done = []
        for step in Run(prepare(settings("steps=2", *words))):
            assert step.picture.device.type == "cuda"
        counts.append(len(done))
        for constant in constants.split():
            monkeypatch.setattr(f"styletransfer.{constant}", extreme)
    assert counts[0] == counts[1]


def test_a_pool_on_a_gpu_is_one_operation(monkeypatch):
    names, usual = [], pretended.count
    x = picture(0, 9, 8).to("cuda")

    def counted(func, *rest):
        names.append(func.overloadpacket.__name__)
        return usual(func, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(pretended, "count", counted)
        found = max_pool(x)
    assert [name for name in names if "max" in name] == ["max_pool2d_with_indices"]
    assert found.cpu().equal(torch.max_pool2d(x.cpu(), 2))


def test_a_recipe_names_the_card(monkeypatch, capsys):
    paint(settings("experiment=tiny", "device=cuda"), Path("run"))
    told = carried(Path("run/pastiche.png"))["hardware"]
    assert re.fullmatch(r"Pretended, (CUDA|ROCm) .+, cuDNN .+, torch .+", told)
    assert record_of("run")["hardware"] in told


CAPTURED = ["experiment=tiny", "device=cuda", "captured=true"]


@pytest.mark.parametrize(
    ("capture", "words", "is_captured"),
    [
        (recorded, [], True),
        (refused, [], False),
        pytest.param(recorded, ["loss_mode=tensor_hook"], False, marks=pytest.mark.slow),
        (recorded, ["device=cpu"], False),
        pytest.param(recorded, ["tile=16", "size=64"], False, marks=pytest.mark.slow),
    ],
    ids=["captured", "it failed", "hooks", "on the CPU", "tiles"],
)
def test_a_recipe_says_whether_evaluations_were_captured(
    capture, words, is_captured, monkeypatch, capsys
):
    """A run begins with what was asked for, and its record ends with what painted."""
    monkeypatch.setattr(run, "captured_on_cuda", capture)
    config = settings(*CAPTURED, *words)
    paint(config, Path("run"))
    assert record_of("run")["config"]["captured"] is is_captured
    told = carried(Path("run/pastiche.png"))["command"]
    assert ("captured=true" in told) is is_captured
    found = finished_picture(replace(config, resume="auto"), Path("run"))
    assert found == Path("run/pastiche.png").absolute()


@pytest.mark.parametrize(("capture", "is_captured"), [(recorded, True), (refused, False)])
def test_a_result_says_whether_it_was_captured(capture, is_captured, monkeypatch):
    monkeypatch.setattr(run, "captured_on_cuda", capture)
    tiny = {"size": 32, "steps": 2, "experiment": "tiny", "device": "cuda"}
    stylize("content.png", "style.png", captured=True, **tiny).save("a.png")
    assert ("captured=true" in carried(Path("a.png"))["command"]) is is_captured


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_presets(preset, monkeypatch):
    """All of them are captured, except one whose loss mode needs Python."""
    monkeypatch.setattr(run, "captured_on_cuda", recorded)
    words = {"texture": ["content='1:1'", "size=48"], "paired": ["style_source=content.png"]}
    words = [f"experiment={preset}", *TINY, *words.get(preset, []), "captured=true"]
    outcome = paint(settings(*words), Path("run")).outcome
    assert (outcome.steps, outcome.problem) == (2, None)
    assert outcome.captured is (preset != "tutorial_0_3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "kind"),
    [*((mode, "wasserstein") for mode in MODES), ("fake_backward", "gram"), (MODES[0], "moments")],
)
def test_loss_modes(mode, kind):
    words = [f"loss_mode={mode}", f"objective.style_loss={kind}", "objective.tv_weight=1"]
    assert paint(settings(*words), Path("run")).outcome.problem is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["tile=32"],
        ["tile=32", "objective.style_loss=wasserstein", "protect=mask.png"],
        ["tile=32", STYLES, MASK, "region_styles={white:1,black:2}"],
        ["content_regions=auto", STYLES],
        [MASK, "style_regions=mask.png"],
        [STYLES, "style_weights=[0.3,0.7]", "scales=2", "size=64"],
        ["style_source=content.png", "tile=32", "color=content_palette"],
        ["style_source=content.png", MASK, "style_regions=mask.png", "protect=mask.png"],
        ["color=style_palette", "color_strength=0.5", "style_detail=style.png"],
        ["color=content_luminance", "content=clear.png"],
        ["optimizer=adam", "checkpoint_every=1e-9", "scales=2", "size=64"],
        ["optimizer.preconditioner=0", "optimizer.averaging=0.9", "init=noise"],
        ["init=content.png", "features.pooling=average", "features.padding=zeros"],
        ["init=style", "style_rotation=30", "style_scale=2", "objective.calm_freedom=0.5"],
        ["precision=float64", "objective.normalization=none"],
        ["precision=bfloat16"],
    ],
    ids=" ".join,
)
def test_controls(words, monkeypatch):
    """Whole pictures are captured, so no evaluation waits for the CPU."""
    monkeypatch.setattr(run, "captured_on_cuda", recorded)
    outcome = paint(settings(*words, "captured=true"), Path("run")).outcome
    assert (outcome.problem, outcome.captured) == (None, "tile=32" not in words)


@pytest.mark.slow
def test_a_run_is_steered_mixed_and_resumed(monkeypatch, signals):
    words = {"size": 32, "steps": 6, "device": "cuda", "precision": "float32"}
    run = iterate("content.png", "style.png", experiment="tiny", **words)
    for step in run:
        if step.step == 3:
            run.steer(style="content.png")
    assert run.result().numpy().shape == (24, 32, 3)
    config = settings("experiment=tiny", *TINY, "steps=4")
    paint(config, Path("whole"))
    with monkeypatch.context() as patch:
        stop_after(2, patch)
        paint(config, Path("run"))
    resumed = paint(replace(config, resume="auto"), Path("run"))
    assert (resumed.status, resumed.outcome.steps) == ("finished", 4)
    whole, again = (images.read(f"{name}/pastiche.png").rgb for name in ("whole", "run"))
    assert whole.equal(again)
    mix(MixConfig(run="run", output="mixed.png"), Path.cwd())


@pytest.mark.slow
def test_verify_says_that_another_device_computed(gpu, capsys):
    paint(settings("experiment=tiny", "device=cuda", "output=a.png"), Path("run"))
    recipe = json.dumps(carried(Path("a.png")) | {"hardware": "another card"})
    images.write("a.png", images.read("a.png").rgb, xmp=images.xmp_of(recipe))
    status, printed = call(capsys, "info", "a.png", "verify=true")
    assert status == 0, printed.err
    assert "painted on another card, and again on Pretended" in printed.out
