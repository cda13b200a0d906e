"""The command `gallery`: the runs found, the page's text on each run, and bad input."""

import json
import re
from itertools import product
from pathlib import Path

from helpers import picture, refusal
from html_tags import Tags

from styletransfer.cli.hydrated import script
from styletransfer.pictures import images
from styletransfer.runs.commands import gallery
from styletransfer.runs.gallery.command import find_runs, main
from styletransfer.runs.settings import GalleryConfig


def make_run(folder, settings, *, total=1.0, seconds=2.0, status="finished"):
    """Write the folder of a run of three steps whose last total loss is `total`."""
    (folder / ".hydra").mkdir(parents=True)
    images.write(folder / "pastiche.png", picture(seed=len(settings)))
    record = {"status": status, "picture": str(folder / "pastiche.png"), "seconds": seconds}
    (folder / "run.json").write_text(json.dumps({**record, "config": settings}))
    lines = [
        {"step": step, "scale": 1 + step // 3, "width": 20, "height": 16}
        | {"total": 5 * loss, "style/relu1_1": 4 * loss, "content/relu2_1": loss}
        for step, loss in ((1, total), (2, total / 2), (3, total / 5))
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    hydra = {"hydra": {"job": {"name": "train"}, "runtime": {"choices": {}}}}
    (folder / ".hydra/hydra.yaml").write_text(json.dumps(hydra))  # JSON is YAML, too
    typed = [f"{key}={value}" for key, value in settings.items()]
    (folder / ".hydra/overrides.yaml").write_text(json.dumps(typed))


def make_sweep(folder):
    """Write a sweep of six finished runs: two styles times three content weights."""
    swept = product(("/a/oil.jpg", "/a/ink.jpg"), (10.0, 0.5, 2.0))
    for number, (style, weight) in enumerate(swept):
        settings = {"style": style, "objective.content_weight": weight, "steps": 3}
        make_run(folder / str(number), settings, total=1.0 + number, seconds=9.0 - number)


def made(folder):
    """Return the page's tags, of the runs in `folder`."""
    main(GalleryConfig([str(folder)]), folder)
    return Tags((folder / "gallery.html").read_text(encoding="utf-8"))


def test_runs_are_found_in_the_order_of_their_numbers(tmp_path):
    for name in ("10", "9", "deep/inside/2"):
        make_run(tmp_path / name, {"size": 3})
    for hidden in (".submitit/7", "%j/8"):
        make_run(tmp_path / hidden, {"size": 3})
    runs, unreadable = find_runs([tmp_path])
    assert [each.name for each in runs] == ["9", "10", "deep/inside/2"]
    assert unreadable == []
    # A run's own folder may be given; a run that is named twice counts once.
    runs, _ = find_runs([tmp_path / "9", tmp_path])
    assert len(runs) == 3


def test_a_damaged_run_is_named_and_the_others_are_shown(tmp_path, capsys):
    make_sweep(tmp_path)
    (tmp_path / "0/run.json").write_text("{")
    (tmp_path / "2/pastiche.png").write_bytes(b"no picture")
    (tmp_path / "3/pastiche.png").unlink()
    (tmp_path / "4/metrics.jsonl").write_text('{"step": 1, "sca')
    (tmp_path / "5/.hydra/overrides.yaml").write_text("{: [")
    text = made(tmp_path).text
    page = f"{tmp_path}/gallery.html"
    assert capsys.readouterr().out == f"5 runs, 2 without a picture; not shown: 0\n{page}\n"
    assert "run.json is damaged" in text
    assert "no picture: the run is finished" in text
    assert "pastiche.png" in text  # the reason names the file that cannot be read
    assert "no loss" in text
    assert "not recorded" in text


def test_the_page_shows_each_run_as_a_picture_and_a_row(tmp_path):
    make_sweep(tmp_path / "weights")
    tags = made(tmp_path / "weights")
    pictures = tags.all("img")
    assert [each["alt"] for each in pictures] == list("012345")
    assert all(str(each["src"]).startswith("data:image/jpeg;base64,") for each in pictures)
    assert "0 · style /a/oil.jpg · objective.content_weight 10.0" in tags.text
    words = " ".join(tags.text.split())
    assert "style objective.content_weight total loss style loss content loss time" in words
    # The losses of the last step are a fifth of the first: total 0.2 x 5, style 0.2 x 4.
    assert "/a/oil.jpg 10.0 1 0.8 0.2 9.0 s finished styletransfer train" in words
    for _, attributes in tags.seen:  # the page loads nothing and runs no script
        assert not {"style", "onclick", "onload"} & {*attributes}
        assert str(attributes.get("href", "data:")).startswith("data:")


def test_hostile_names_are_text(tmp_path, capsys):
    hostile = "</script><script>alert(1)</script>\"' onload=x & <b>"
    for number, text in enumerate((hostile, "{{ 7 * 7 }}")):
        make_run(tmp_path / f"<i>{number}", {"style": text, text: number}, status=text)
    (tmp_path / "<u>\x1b[2J").mkdir()
    (tmp_path / "<u>\x1b[2J/run.json").write_text("{")
    tags = made(tmp_path)
    assert capsys.readouterr().out.startswith("2 runs; not shown: <u>[2J\n")
    assert not [*tags.all("script"), *tags.all("i"), *tags.all("u")]
    assert hostile in tags.text
    assert "{{ 7 * 7 }}" in tags.text
    (policy,) = (each["content"] for each in tags.all("meta") if "http-equiv" in each)
    assert re.match("default-src 'none'; img-src data:; style-src", policy or "")


def test_bad_input(desk, capsys):
    make_sweep(desk / "sweep")
    Path("empty").mkdir()
    before = sorted(desk.rglob("*"))
    for words, message in (
        ([], "name the folder of a sweep or of runs: styletransfer gallery FOLDER"),
        (["nowhere"], "nowhere is no folder; name that of a sweep, or of a run of train"),
        (["empty"], "there is no run of train in empty; name a sweep's folder, or a run's"),
        (["nofile", "folders=[sweep]"], "cannot understand 'nofile' beside folders="),
        (["sweep", "output=a.png"], "output=a.png must end in .html"),
    ):
        assert message in refusal(capsys, "gallery", *words)
        assert sorted(desk.rglob("*")) == before


def test_a_page_of_several_folders_is_written_elsewhere(desk, capsys):
    names = ["weight=1,style=a", "it's [here]", "plain"]
    for name in names:
        make_run(desk / name, {"size": len(name)})
    script(gallery)([*names, "output=new/choice.html"])
    assert capsys.readouterr().out.splitlines() == ["3 runs", "new/choice.html"]
    assert {path.name for path in Path("new").iterdir()} == {"choice.html"}
