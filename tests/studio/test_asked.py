"""What the page asks for: the form, the command line that it comes to, and what is refused."""

import shlex

import pytest
from helpers import composed
from studios import opened

from styletransfer.cli.arguments import parse
from styletransfer.config import TrainConfig
from styletransfer.settings.schemas import meanings
from styletransfer.studio.controls import CONTROLS, key_in

# Never the page's to choose: they name files, or folders.
FORBIDDEN = ["output", "resume", "features.weights", "style_regions", "hydra.run.dir", "changes"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("studio")) as client:
        yield client


def check(client, **settings):
    answer = client.post("/api/check", json={"settings": settings})
    return answer.status_code, answer.json()


def controls(client):
    groups = client.get("/api/form").json()["groups"]
    return {control["key"]: control for group in groups for control in group["controls"]}


def test_the_first_look_shows_six_controls(client):
    groups = client.get("/api/form").json()["groups"]
    assert groups[0]["name"] == "first"
    assert len(groups[0]["controls"]) == 6
    assert all(group["title"] for group in groups[1:])


def test_helps_and_defaults_are_the_configs_own(client):
    found = controls(client)
    assert found["steps"]["default"] == TrainConfig().steps
    assert found["steps"]["help"] == meanings(TrainConfig)["steps"]
    assert found["objective.tv_weight"]["help"].startswith("Linear weight of the squared total")
    assert found["content"]["default"] == "content-coffee"
    assert found["style"]["default"] == ["style-oil"]
    assert all(control["help"] for control in found.values())
    assert not found["content"]["steerable"]
    assert found["objective.content_weight"]["steerable"]


def test_no_key_of_the_page_takes_a_path(client):
    assert not set(FORBIDDEN) & set(controls(client))
    for key in FORBIDDEN:
        status, said = check(client, **{key: "/etc/passwd"})
        assert status == 400
        assert "unknown key" in said["error"]


@pytest.mark.parametrize(
    "key",
    [
        key
        for key, control in CONTROLS.items()
        if control.kind in ("picture", "mask", "regions", "pictures")
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../etc/passwd",
        "assets/style/oil.jpg",
        "style-oil\0",
        "",
        ".",
        3,
        ["/etc"],
        {},
        True,
    ],
)
def test_paths_for_ids(client, key, path):
    status, said = check(client, **{key: path})
    assert status in (400, 404)
    assert "Traceback" not in said["error"]


@pytest.mark.parametrize("value", ["/etc/passwd", "noise.png", "$HOME"])
def test_init_names_no_file(client, value):
    assert check(client, init=value) == (
        400,
        {"error": f"init={value} must be one of content, style, noise", "key": "init"},
    )


SETTINGS = {
    "content": "content-rocket",
    "style": ["style-oil", "style-mosaic"],
    "style_weights": [2, 1.5],
    "size": 300,
    "objective.content_weight": 0.4,
    "objective.style_layers": "relu1_1, relu3_1",
    "color": "content_palette",
    "optimizer.name": "adam",
    "features.name": "vgg19",
    "region_styles": {"red": 1, "#00e100": 2},
    "content_regions": "style-oil",
    "tile": "off",
}


def test_the_command_line_is_the_very_settings(client):
    status, said = check(client, **SETTINGS)
    assert status == 200
    words = shlex.split(said["command"])
    assert words[:2] == ["styletransfer", "train"]
    typed = composed("train", *parse(words[2:], TrainConfig).overrides)
    assert typed.content.endswith("assets/content/rocket.jpg")
    assert [path.rpartition("/")[2] for path in typed.style] == ["oil.jpg", "mosaic.jpg"]
    assert (typed.size, typed.style_weights, typed.tile) == (300, [2.0, 1.5], "off")
    assert typed.objective.style_layers == ["relu1_1", "relu3_1"]
    assert typed.optimizer == composed("train", "optimizer=adam").optimizer
    assert typed.features == composed("train", "features=vgg19").features
    assert typed.region_styles == {"red": 1, "0x00e100": 2}


def test_nothing_set_is_the_default(client):
    assert check(client) == (200, {"command": "styletransfer train"})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("size", 0.5, "could not be converted to Integer"),
        ("size", 10**30, "is too large"),
        ("size", "512", "must be a number"),
        ("size", True, "must be a number"),
        ("size", None, "must be a number"),
        ("steps", [1], "must be a number"),
        ("objective.content_weight", "1; rm -rf /", "must be a number"),
        ("color", "mauve", "must be one of style"),
        ("color", ["style"], "must be one of style"),
        ("optimizer.name", "../adam", "must be one of lbfgs"),
        ("style_weights", ["a"], "must be a number"),
        ("style_weights", [1] * 1000, "at most"),
        ("style", ["style-oil"] * 1000, "at most"),
        ("tile", "x" * 1000, "at most"),
        ("device", "cpu\nsize=3", "must be a text"),
        ("region_styles", {"red}": 1}, "no name of a colour"),
        ("region_styles", {"red": "1"}, "whole number"),
        ("region_styles", [1], "must give each"),
        ("sise", 3, "did you mean size?"),
        ("", 3, "unknown key"),
        ("experiment", "bold", "unknown key"),
    ],
)
def test_values_that_no_control_gives(client, key, value, said):
    status, answer = check(client, **{key: value})
    assert status in (400, 422)
    assert said in answer["error"]
    assert "\n" not in answer["error"]
    assert answer["key"] == (key if key in CONTROLS else None)


@pytest.mark.parametrize(
    "text", ["${oc.env:HOME}", "a,b", "x=1", "'", "}{", "--multirun", "hydra.run.dir=/"]
)
def test_texts_are_one_value_whatever_is_in_them(client, text):
    status, said = check(client, device=text)
    assert status == 200
    words = shlex.split(said["command"])
    assert len(words) == 3
    assert composed("train", *parse(words[2:], TrainConfig).overrides).device == text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[1]", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 60_000, 400),
        (b'{"settings": ' * 4000, 400),
        (b'{"settings": 3}', 400),
        (b'{"settings": null}', 400),
        (b'{"settings": {"size": NaN}}', 400),
        (b'{"settings": {"size": 1e999}}', 400),
        (b'{"settings": {"size": -Infinity}}', 400),
        (b'{"settings": {"size": ' + b"9" * 5000 + b"}}", 400),
        (b'"' + b"x" * 70_000 + b'"', 413),
    ],
)
def test_bodies_that_are_none(client, body, status):
    for path in ("/api/check", "/api/jobs", "/api/lessons"):
        answer = client.post(path, content=body)
        assert answer.status_code == status
        assert set(answer.json()) == {"error", "key"}


def test_presets_are_settings_of_the_page(client):
    found = {one["name"]: one for one in client.get("/api/form").json()["experiments"]}
    assert {"bold", "faithful", "painterly", "gatys_2016"} <= set(found)
    assert "tiny" not in found
    for one in found.values():
        assert one["help"]
        status, said = check(client, **one["values"])
        assert status == 200
        words = shlex.split(said["command"])[2:]
        typed = composed("train", *parse(words, TrainConfig).overrides)
        assert typed == composed("train", f"experiment={one['name']}")


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("size=3 is too small", "size"),
        ("objective.content_weight=-1 must be 0 or more", "objective.content_weight"),
        ("unknown objective.style_loss 'x'", "objective.style_loss"),
        ("the style is too bold", None),
        ("a=b; raise size, or lower scales=3", "scales"),
        ("output=a.png", None),
        ("the process was killed", None),
    ],
)
def test_which_control_a_message_is_about(message, key):
    assert key_in(message) == key
