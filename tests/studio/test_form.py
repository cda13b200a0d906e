"""The form of the page: its controls, the command line for its settings, and its errors."""

import io
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import composed
from PIL import Image

pytest.importorskip("starlette", reason="the studio needs the extra [studio]")

from styletransfer.cli.arguments import parse
from styletransfer.job import memory
from styletransfer.pictures import images
from styletransfer.settings import TrainConfig
from styletransfer.settings.help import meanings
from styletransfer.studio import reader
from styletransfer.studio.controls import CONTROLS
from styletransfer.studio.form import command_of, read_request

# Settings that the page must not offer: paths, style_regions, and the device.
FORBIDDEN = ["output", "resume", "features.weights", "style_regions", "hydra.run.dir", "device"]


def check(client, **settings):
    answer = client.post("/api/check", json={"settings": settings})
    words = ("command", "error", "key")
    return answer.status_code, {key: said for key, said in answer.json().items() if key in words}


def typed(said):
    """Return the TrainConfig of the command line in `said["command"]`."""
    words = shlex.split(said["command"])
    assert words[:2] == ["styletransfer", "train"]
    return composed("train", *parse(words[2:], TrainConfig).overrides)


def test_the_form_is_the_configs_own(client):
    groups = client.get("/api/form").json()["groups"]
    assert [bool(group["title"]) for group in groups] == [False] + [True] * 4
    assert len(groups[0]["controls"]) == 7
    controls = {control["key"]: control for group in groups for control in group["controls"]}
    assert not set(FORBIDDEN) & set(controls)
    assert controls["steps"]["default"] == composed("train").steps
    assert controls["steps"]["help"] == meanings(TrainConfig)["steps"]
    assert controls["objective.tv_weight"]["help"].startswith("Linear weight of the squared total")
    assert controls["content"]["default"] == "content-coffee"
    assert controls["style"]["default"] == ["style-oil"]
    assert all(control["help"] for control in controls.values())
    assert not controls["content"]["steerable"]
    assert controls["objective.content_weight"]["steerable"]
    kinds = {"style": "pictures", "protect": "mask", "size": "integer", "region_styles": "mapping"}
    assert {key: controls[key]["kind"] for key in kinds} == kinds


def test_no_key_of_the_page_takes_a_path(client):
    for key in FORBIDDEN:
        status, said = check(client, **{key: "/etc/passwd"})
        assert status == 400
        assert "unknown key" in said["error"]
    for key, control in CONTROLS.items():
        if control.kind in ("picture", "mask", "regions", "pictures"):
            for path in ("/etc/passwd", "../../etc/passwd", "assets/style/oil.jpg", "style-oil\0"):
                assert check(client, **{key: path})[0] in (400, 404)
            for other in ("", ".", 3, ["/etc"], {}, True):
                assert check(client, **{key: other})[0] in (400, 404)
    error = (
        "color=/etc/passwd must be one of style, style_palette, content_palette, content_luminance"
    )
    assert check(client, color="/etc/passwd") == (400, {"error": error, "key": "color"})


def test_the_command_line_is_the_very_settings(client):
    assert check(client) == (200, {"command": "styletransfer train"})
    settings = {
        "content": "content-rocket",
        "style": ["style-oil", "style-mosaic"],
        "style_weights": [2, 1.5],
        "size": 300,
        "objective.content_layers": "relu3_2, relu4_2",
        "region_styles": {"red": 1, "#00e100": 2},
        "content_regions": "style-oil",
    }
    status, said = check(client, **settings)
    assert status == 200
    config = typed(said)
    assert config.content.endswith("assets/content/rocket.jpg")
    assert [path.rpartition("/")[2] for path in config.style] == ["oil.jpg", "mosaic.jpg"]
    assert (config.size, config.style_weights) == (300, [2.0, 1.5])
    assert config.objective.content_layers == ["relu3_2", "relu4_2"]
    assert config.region_styles == {"red": 1, "0x00e100": 2}


@pytest.mark.slow
def test_impossible_settings_are_told_beside_their_controls(client, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2.0**33)
    for key, value, said in (
        ("size", -5, "must be 1 or more"),
        ("size", 99_999_999, "and at most"),
        ("size", 65_000, "choose less"),
        ("steps", -1, "must be 1 or more"),
        ("style", [], "style names no picture"),
        ("objective.content_weight", -1, "must be 0 or more"),
    ):
        status, answer = check(client, **{key: value})
        assert (status, answer["key"]) == (422, key)
        assert said in answer["error"]


def test_what_a_picture_costs_is_told_before_it_is_painted(client, monkeypatch):
    """Check the told size, memory and time; the time is None until a step has been timed."""
    queue = client.app.state.studio.queue
    costs = []
    for size, pace in ((256, None), (256, 1e-6), (2048, 1e-6)):
        monkeypatch.setattr(queue, "pace", lambda settings, pace=pace: pace)
        costs.append(client.post("/api/check", json={"settings": {"size": size}}).json())
    assert [(one["width"], one["height"]) for one in costs] == [(256, 171)] * 2 + [(2048, 1365)]
    assert costs[0]["seconds"] is None
    assert 0 < costs[1]["seconds"] < costs[2]["seconds"]
    assert costs[0]["memory"].endswith("MiB")


def test_values_that_no_control_gives(client):
    for key, value, said in (
        ("size", 0.5, "could not be converted to Integer"),
        ("size", "512", "must be a number"),
        ("objective.content_layers", "a\nsize=3", "must be a text"),
        ("region_styles", {"red}": 1}, "no name of a colour"),
        ("region_styles", [1], "must give each"),
        ("sise", 3, "did you mean size?"),
        ("experiment", "bold", "unknown key"),
    ):
        status, answer = check(client, **{key: value})
        assert status in (400, 422)
        assert said in answer["error"]
        assert "\n" not in answer["error"]
        assert answer["key"] == (key if key in CONTROLS else None)


@pytest.mark.slow
def test_texts_are_one_value_whatever_is_in_them(client):
    shelf = client.app.state.studio.pictures
    for text in ("${oc.env:HOME}", "a=1", "'}{", "--multirun"):
        said = command_of(read_request({"objective.content_layers": text}, shelf).overrides)
        assert len(shlex.split(said)) == 3
        assert typed({"command": said}).objective.content_layers == [text]
        assert check(client, **{"objective.content_layers": text})[0] == 422


def test_bodies_that_are_none(client):
    sizes = ("NaN", "1e999", "-Infinity", "9" * 5000)
    bodies = ["[1]", "{", "[" * 60_000, '{"settings": 3}', '{"settings": null}', "x" * 70_000]
    bodies += [f'{{"settings": {{"size": {size}}}}}' for size in sizes]
    for body in (b"\xff", *map(str.encode, bodies)):
        for path in ("/api/check", "/api/queue"):
            answer = client.post(path, content=body)
            assert answer.status_code == (413 if len(body) > 65536 else 400)
            assert set(answer.json()) == {"error", "key"}


def test_lone_surrogates_are_refused_in_every_place(client):
    """UTF-8 cannot hold half of a pair of surrogates, which JSON can."""
    places = ['"\\ud800": 1', '"color": "\\udfff"', '"size": "\\ud800"', '"content": "\\ud800"']
    places += ['"style": ["\\ud800"]', '"region_styles": {"\\ud800": 1}']
    places += ['"objective.content_layers": "\\ud800"']
    for place in places:
        for path in ("/api/check", "/api/queue", "/api/queue/a/steer"):
            answer = client.post(path, content=f'{{"settings": {{{place}}}}}')
            assert answer.status_code in (400, 404)
            assert set(answer.json()) == {"error", "key"}


def test_long_lists_are_refused_at_once(client):
    for key, value, most in (
        ("style", ["style-oil"] * 17, 16),
        ("style", ["style-oil"] * 3000, 16),
        ("style_weights", [1.0] * 65, 64),
        ("style_scale", [1.0] * 9000, 64),
        ("region_styles", {f"#{n:06x}": 1 for n in range(65)}, 64),
    ):
        status, answer = check(client, **{key: value})
        assert (status, answer["key"]) == (400, key)
        assert answer["error"] == f"{key} holds {len(value)} values; choose at most {most}"
    assert check(client, style=["style-oil"] * 16)[0] == 200


def test_a_check_decodes_no_picture(client, monkeypatch):
    monkeypatch.setattr(reader, "_decoded", None)
    monkeypatch.setattr(images, "read", None)
    assert check(client, content="content-rocket", style=["style-oil", "style-mosaic"])[0] == 200


def test_a_check_of_a_picture_that_is_gone_is_refused(client, folder):
    data = io.BytesIO()
    Image.new("RGB", (48, 32), "teal").save(data, "PNG")
    id = client.post("/api/pictures?name=a.png", content=data.getvalue()).json()["id"]
    assert check(client, content=id)[0] == 200
    (folder / "pictures" / id).unlink()
    status, answer = check(client, content=id)
    assert (status, answer["error"]) == (404, "a.png is gone; choose another picture")


@pytest.mark.slow
def test_looks_are_settings_of_the_page(client):
    presets = {one["name"]: one for one in client.get("/api/form").json()["looks"]}
    assert list(presets) == ["painted", "faithful", "painterly", "bold"]
    assert presets["painted"]["values"] == {
        "steps": 60,
        "color": "style_palette",
        "objective.match_weight": 0.5,
        "objective.content_weight": 0.18,
        "objective.style_weight": 1.0,
        "objective.style_loss": "gram",
    }
    for name, preset in presets.items():
        assert preset["help"]
        status, said = check(client, **preset["values"])
        assert status == 200
        assert typed(said) == composed("train", f"experiment={name}")


def test_pages_that_open_together_get_their_forms(client):
    with ThreadPoolExecutor(12) as pool:
        answers = [*pool.map(lambda _: client.get("/api/form"), range(24))]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
