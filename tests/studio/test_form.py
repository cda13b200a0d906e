"""The form of the page: its controls, the command line for its settings, and its errors."""

import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import composed
from PIL import Image
from studio.studios import sent

from styletransfer.cli.arguments import parse
from styletransfer.job import memory
from styletransfer.pictures import images
from styletransfer.settings import TrainConfig
from styletransfer.studio.controls import CONTROLS
from styletransfer.studio.form import (
    changed_settings,
    command_of,
    page_values,
    read_request,
    recalled,
)

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
    form = client.get("/api/form").json()
    groups = [form[name] for name in ("controls", "later", "hidden")]
    assert [len(group) for group in groups] == [8, 8, 4]
    controls = {control["key"]: control for group in groups for control in group}
    assert not set(FORBIDDEN) & set(controls)
    assert controls["steps"]["default"] == composed("train").steps
    assert "pixels" in controls["size"]["help"]
    assert controls["content"]["default"] == "content-coffee"
    assert controls["style"]["default"] == ["style-oil"]
    without = [key for key, control in controls.items() if not control["help"]]
    assert without == [control["key"] for control in form["hidden"]]  # they have no row
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


def labels(client, size=(512, 341), left="#ff0000", right="#00e100"):
    """Upload a label picture with two halves; return its id."""
    picture = Image.new("RGB", size, left)
    picture.paste(right, (size[0] // 2, 0, *size))
    return sent(client, picture, "drawn.png")


@pytest.mark.slow
def test_the_command_line_is_the_very_settings(client):
    assert check(client) == (200, {"command": "styletransfer train"})
    settings = {
        "content": "content-rocket",
        "style": ["style-oil", "style-mosaic"],
        "style_weights": [2, 1.5],
        "size": 300,
        "objective.content_layers": "relu3_2, relu4_2",
        "region_styles": {"red": 1, "#00e100": 2},
    }
    settings["content_regions"] = labels(client)
    refused = check(client, **settings)
    assert (refused[0], refused[1]["key"]) == (400, "style_weights")
    del settings["style_weights"]
    status, said = check(client, **settings)
    assert status == 200
    config = typed(said)
    assert config.content.endswith("assets/content/rocket.jpg")
    assert [path.rpartition("/")[2] for path in config.style] == ["oil.jpg", "mosaic.jpg"]
    assert config.size == 300
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


@pytest.mark.slow
def test_regions_and_masks_are_checked_before_painting(client):
    """Each of these was accepted, and failed when it was painted."""
    two = {"style": ["style-oil", "style-mosaic"], "content_regions": labels(client)}
    for settings, key, said in (
        (two | {"style_weights": [2, 1]}, "style_weights", "drawn regions have one style each"),
        (two, "region_styles", "say which takes which"),
        (two | {"region_styles": {"blue": 1}}, "region_styles", "has no region 'blue'"),
        (two | {"region_styles": {"red": 3}}, "region_styles", "3"),
        ({"region_styles": {"red": 1}}, "region_styles", "needs content_regions"),
        ({"content_regions": "style-oil"}, "content_regions", "is it a photograph?"),
        ({"content_regions": labels(client, (300, 300))}, "content_regions", "aspect ratio"),
        ({"protect": "style-oil"}, "protect", "a mask is grey"),
        ({"protect": labels(client, (341, 512), "#000", "#fff")}, "protect", "aspect ratio"),
        ({"protect": labels(client, left="#fff", right="#fff")}, "protect", "covers all"),
    ):
        answer = client.post("/api/queue", json={"settings": settings})
        assert answer.status_code in (400, 422), settings
        assert said in answer.json()["error"]
        assert answer.json()["key"] in (key, None)
    assert check(client, **two, region_styles={"red": 2, "#00e100": 1})[0] == 200
    assert check(client, protect=labels(client, left="#000", right="#fff"))[0] == 200


@pytest.mark.slow
def test_a_drawing_of_any_picture_has_its_aspect_ratio(client):
    for width, height in ((4032, 3024), (1999, 1001), (641, 1137), (3000, 257), (100, 67)):
        content = sent(client, Image.new("RGB", (width, height), "teal"))
        scale = min(1, 1024 / max(width, height))
        drawn = labels(client, (round(width * scale), round(height * scale)))
        assert check(client, content=content, content_regions=drawn)[0] == 200


def test_a_pictures_time_is_told_before_it_is_painted(client, monkeypatch):
    """It is None until a step has been timed."""
    queue = client.app.state.studio.queue
    costs = []
    for size, pace in ((256, None), (256, 1e-6), (2048, 1e-6)):
        monkeypatch.setattr(queue, "pace", pace)
        costs.append(client.post("/api/check", json={"settings": {"size": size}}).json())
    assert costs[0]["seconds"] is None
    assert 0 < costs[1]["seconds"] < costs[2]["seconds"]


def test_values_that_no_control_gives(client):
    for key, value, said in (
        ("size", 0.5, "size must be a whole number"),
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
    monkeypatch.setattr(images, "read", None)
    assert check(client, content="content-rocket", style=["style-oil", "style-mosaic"])[0] == 200


def test_a_check_of_a_picture_that_is_gone_is_refused(client, folder):
    id = sent(client, Image.new("RGB", (48, 32), "teal"), "a.png")
    assert check(client, content=id)[0] == 200
    (folder / "pictures" / id).unlink()
    status, answer = check(client, content=id)
    assert (status, answer["error"]) == (404, "a.png is gone; choose another picture")


@pytest.mark.slow
def test_looks_are_settings_of_the_page(client):
    presets = {one["name"]: one for one in client.get("/api/form").json()["looks"]}
    assert list(presets) == ["painted", "faithful", "painterly", "bold"]
    assert presets["painted"]["values"]["objective.match_weight"] == 0.5
    assert len({frozenset(one["values"]) for one in presets.values()}) == 1  # all set the same keys
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


def test_regions_may_be_found_by_the_run(client):
    """They take shares of styles; a sketch has none of them; a result and its file tell of them."""
    shelf = client.app.state.studio.pictures
    settings = {"content_regions": "auto", "style": ["style-oil", "style-mosaic"]}
    settings["style_weights"] = [2, 1]
    assert check(client, **settings)[0] == 200
    run, sketch = (read_request(settings, shelf, one) for one in (False, True))
    assert "content_regions=auto" in run.overrides
    assert not [word for word in sketch.overrides if "regions" in word]
    values = page_values(run.config)
    assert changed_settings(values, shelf) == settings
    assert recalled((values, {}), shelf)["settings"]["content_regions"] == "auto"
