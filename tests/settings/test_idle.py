"""Keys that have no effect beside the other settings are told, if they were typed."""

import pytest
from helpers import call, composed, files_in, needs, status_of, write_pictures
from PIL import Image

from styletransfer.settings.idle import is_idle
from styletransfer.settings.registry import commands
from styletransfer.settings.schemas import keys

STYLE = "objective.style_weight"
TRAIN = ["train", "experiment=tiny", "content=content.png", "style=style.png"]
# Words of a command line, the last of which has no effect; then a word with which it has one.
PAIRS = [
    ([*TRAIN, "optimizer=adam", "optimizer.history=5"], "optimizer=lbfgs"),
    ([*TRAIN, "optimizer=adam", "optimizer.preconditioner=0"], "optimizer=lbfgs"),
    ([*TRAIN, "optimizer=adam", "optimizer.plateau=0"], "optimizer=lbfgs"),
    ([*TRAIN, "objective.match_layers=[relu2_1]"], "objective.match_weight=1"),
    ([*TRAIN, "objective.match_painted=0.2"], "objective.match_weight=1"),
    ([*TRAIN, "objective.calm_freedom=0"], "objective.match_weight=1"),
    ([*TRAIN, f"{STYLE}=0", "objective.style_loss=moments"], f"{STYLE}=1"),
    (
        [*TRAIN, "objective.content_weight=0", "objective.content_layers=[relu1_1]"],
        "objective.content_weight=1",
    ),
    ([*TRAIN, "objective.detail_layers=[relu1_1]"], "style_detail=style.png"),
    ([*TRAIN, "color_strength=0.5"], "color=content_luminance"),
    ([*TRAIN, "features.weights=net.pth", "seed=3"], "init=noise"),
    ([*TRAIN, "dry_run=true", "format=json"], "dry_run=false"),
    (["film", "content=frames", "independent=true", "frame_steps=3"], "independent=false"),
    (["film", "content=frames", "independent=true", "temporal_weight=3"], "independent=false"),
    (["apply", "input=a.png", "seed=3"], "random=true"),
    (["apply", "input=a.png", "least_strength=0.2"], "random=true"),
    (["apply", "input=a.png", "color_strength=0.5"], "color=content_luminance"),
    (["export", "output=a.onnx", "runtime=folder"], "target=web"),
    (["info", "picture=a.png", "inputs=b.png"], "verify=true"),
    (["train_network", "objective.match_painted=0.2"], "objective.match_weight=1"),
    (["compare", "optimizer=adam", "optimizer.history=5"], "optimizer=lbfgs"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "other"), PAIRS, ids=[words[-1] for words, _ in PAIRS])
def test_a_key_without_effect_is_known(words, other):
    name, *words = words
    key = words[-1].partition("=")[0]
    reason = dict(keys(commands()[name].schema))[key].metadata["idle"]
    assert is_idle(composed(name, *words), reason)
    assert not is_idle(composed(name, *words, other), reason)


def test_conditions_name_keys():
    known = {key for command in commands().values() for key, _ in keys(command.schema)}
    for command in commands().values():
        for _, field in keys(command.schema):
            if reason := field.metadata.get("idle"):
                word, _, conditions = reason.partition(" ")
                assert word in ("with", "without")
                assert {one.partition("=")[0] for one in conditions.split(" or ")} <= known


@pytest.mark.slow
def test_typed_keys_without_effect_are_told(desk, capsys):
    typed = ["seed=3", "objective.calm_freedom=0", "tile=64"]
    words = [*TRAIN, "features.weights=random", "hydra.run.dir=run"]
    status, told = call(capsys, *words, *typed)
    assert status == 0
    for word in typed[1:]:
        assert f"{word} has no effect" in told.out + told.err
    assert (told.out + told.err).count("has no effect") == 2  # seed: of the random weights


def test_a_refused_run_with_such_a_key_leaves_nothing(desk, capsys):
    before = files_in(".")
    words = ["init=style", "features.weights=w.pth", "seed=3", "format=json"]
    status, told = call(capsys, *TRAIN, *words)
    assert (status, told.out) == (1, "")
    assert "seed=3 has no effect without init=noise" in told.err
    assert files_in(".") == before


@pytest.mark.slow
def test_explain_tells_keys_of_a_run(desk, capsys):
    typed = ["steps=7", "optimizer.averaging=0.5", "output=a.png"]
    status, told = call(capsys, "explain", *TRAIN[1:], *typed, "hydra.run.dir=run")
    assert status == 0
    for word in typed:
        assert f"{word} has no effect in explain, which paints nothing" in told.out + told.err


@pytest.mark.slow
def test_film_tells_what_style_source_makes_idle(desk, capsys):
    """Check also that the frames are the same."""
    needs("video", "cv2")
    write_pictures("frames/0.png")
    write_pictures("style.png", "photo.png")
    typed = ["frame_steps=3", "objective.content_weight=2", "steps=4", "init=noise"]
    words = ["content=frames", "style=style.png", "style_source=photo.png", "size=32"]
    words += ["features=vgg19", "features.weights=random", "device=cpu", "output=a.mp4"]
    assert status_of("film", *words, "hydra.run.dir=plain") == 0
    capsys.readouterr()
    status, told = call(capsys, "film", *words, *typed, "hydra.run.dir=run")
    assert status == 0, told
    for word in typed:
        assert f"{word} has no effect with" in told.out + told.err
    frame = "frames/000000.png"
    assert (desk / "run" / frame).read_bytes() == (desk / "plain" / frame).read_bytes()


@pytest.mark.slow
def test_film_tells_a_rate_without_effect(desk, capsys):
    needs("video", "cv2")
    Image.new("RGB", (32, 24)).save("a.gif")
    words = ["content=a.gif", "style=style.png", "experiment=tiny", "steps=2", "output=a.mp4"]
    status, told = call(capsys, "film", *words, "fps=3", "hydra.run.dir=run")
    assert status == 0, told
    assert "fps=3 has no effect where content is no folder of frames" in told.out + told.err
