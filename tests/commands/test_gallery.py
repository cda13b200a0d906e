"""A gallery of runs: which are found, what the page says of each, and bad input."""

import re
import shutil
from pathlib import Path

from galleries import Tags, make_run, make_sweep
from helpers import refusal

from styletransfer.cli import script
from styletransfer.commands.gallery.command import FoundRun, find_runs, make_gallery, varied
from styletransfer.runs.folder import RunFolder
from styletransfer.settings import GalleryConfig


def made(*folders):
    return make_gallery(GalleryConfig(list(map(str, folders))))


class Record(RunFolder):
    """A run's record whose command line is its settings."""

    @property
    def typed(self):
        return tuple(f"{key}={value}" for key, value in self.settings.items())


def run(choices=None, record=Record, **settings):
    return FoundRun("0", record(Path(), "finished", settings, Path(), 1.0), choices or {}, None, {})


def test_runs_are_found_in_the_order_of_their_numbers(tmp_path):
    for name in ("10", "9", "deep/inside/2"):
        make_run(tmp_path / name, {"size": 3})
    for hidden in (".submitit/7", "%j/8"):
        make_run(tmp_path / hidden, {"size": 3})
    runs, unreadable = find_runs([tmp_path])
    assert [each.name for each in runs] == ["9", "10", "deep/inside/2"]
    assert unreadable == []
    # A run's own folder, and one that is named twice.
    runs, _ = find_runs([tmp_path / "9", tmp_path])
    assert len(runs) == 3


def test_damaged_runs_are_named_and_unfinished_ones_shown(tmp_path):
    make_sweep(tmp_path)
    (tmp_path / "0/run.json").write_text("{")
    (tmp_path / "1/run.json").unlink()  # it ended before it had written any
    (tmp_path / "2/pastiche.png").write_bytes(b"no picture")
    (tmp_path / "3/pastiche.png").unlink()
    (tmp_path / "4/metrics.jsonl").write_text('{"step": 1, "sca')
    (tmp_path / "5/.hydra/hydra.yaml").write_text("{: [")
    shutil.copytree(tmp_path / "1", tmp_path / "6")  # of another command
    (tmp_path / "6/.hydra/hydra.yaml").write_text("hydra: {job: {name: judge}}")
    summary, page = made(tmp_path)
    assert summary == "4 runs, 2 without a picture; not shown: 0, 1"
    text = Tags(page.read_text()).text
    assert "run.json is damaged" in text
    assert "ended before its first step" in text
    assert "no picture: the run is finished" in text
    assert "pastiche.png" in text  # says what cannot be read
    assert "no loss" in text


def test_odd_runs_leave_the_page_and_the_others_as_they_are(tmp_path):
    for name in ("plain", "two\nlines", "bytes\udcff"):
        make_run(tmp_path / name, {"size": len(name), "content": "photo.jpg"})
    odd: tuple[object, ...] = ("\udcff.jpg", "a\nb", "\0", "x" * 50_000, 10**400, [[{"a": None}]])
    for number, value in enumerate(odd):
        make_run(tmp_path / f"odd{number}", {"size": value, "content": value})
    shutil.copytree(tmp_path / "odd0", tmp_path / "failed")
    (tmp_path / "failed/run.json").unlink()
    (tmp_path / "failed/error.txt").write_text("no memory")
    summary, page = made(tmp_path)
    assert summary == "9 runs; not shown: failed"
    text = Tags(page.read_text()).text
    for words in (r"two\nlines", r"bytes\udcff", r"\udcff.jpg", r"a\nb", "no memory"):
        assert words in text


def test_only_keys_that_differ_are_shown():
    assert varied([run(size=3, output="a"), run(size=4, output="b")]) == {"size": ["3", "4"]}
    assert [*varied([run(b=1, a=1), run(b=1, a=2), run(b=2, a=1)])] == ["b", "a"]
    assert varied([run(size=3)]) == {}


def test_a_preset_stands_for_the_keys_that_it_sets():
    class Swept(Record):
        @property
        def typed(self):
            return ("experiment=", "style=")

    def runs(record, **choices):
        made = [("bold", 3), ("faithful", 9)]
        return [
            run({"experiment": name} if choices else {}, record, style=style, steps=steps)
            for name, steps in made
            for style in "ab"
        ]

    assert [*varied(runs(Swept, known=True))] == ["experiment", "style"]
    # Without Hydra's record of the presets, the keys that they set are shown.
    assert [*varied(runs(Swept))] == ["style", "steps"]


def test_values_as_they_are_shown():
    def texts(key, *values):
        return varied([run(**{key: value}) for value in values])[key]

    assert texts("seed", 10, 0.5, None) == ["10", "0.5", "null"]
    assert texts("style", "/x/a.jpg", "/x/b.jpg") == ["a.jpg", "b.jpg"]
    assert texts("style", "/x/a.jpg", "/y/a.jpg") == ["/x/a.jpg", "/y/a.jpg"]
    assert texts("style", ["/x/a.jpg", "/x/b.jpg"], "/x/a.jpg") == ["a.jpg, b.jpg", "a.jpg"]


def test_the_page_shows_each_run_as_a_picture_and_a_row(tmp_path):
    make_sweep(tmp_path / "weights")
    _, page = made(tmp_path / "weights")
    assert page == tmp_path / "weights/gallery.html"
    tags = Tags(page.read_text(encoding="utf-8"))
    pictures = tags.all("img")
    assert [each["alt"] for each in pictures] == list("012345")
    assert all(str(each["src"]).startswith("data:image/jpeg;base64,") for each in pictures)
    assert "0 · style oil.jpg · objective.content_weight 10.0" in tags.text
    words = " ".join(tags.text.split())
    assert "style objective.content_weight total loss style loss content loss time" in words
    # The losses of the last step are a fifth of the first: total 0.2 x 5, style 0.2 x 4.
    assert "oil.jpg 10.0 1 0.8 0.2 9.0 s finished styletransfer train" in words
    for _, attributes in tags.seen:  # the page loads nothing and runs no script
        assert not {"style", "onclick", "onload"} & {*attributes}
        assert str(attributes.get("href", "data:")).startswith("data:")


def test_hostile_names_are_text(tmp_path):
    hostile = "</script><script>alert(1)</script>\"' onload=x & <b>"
    for number, text in enumerate((hostile, "{{ 7 * 7 }}")):
        make_run(tmp_path / f"<i>{number}", {"style": text, text: number}, status=text)
    (tmp_path / "<u>").mkdir()
    (tmp_path / "<u>/run.json").write_text("{")
    tags = Tags(made(tmp_path)[1].read_text(encoding="utf-8"))
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
        (["sweep", "output=a.png"], "output=a.png must end in .html"),
    ):
        assert message in refusal(capsys, "gallery", *words)
        assert sorted(desk.rglob("*")) == before


def test_a_page_of_several_folders_is_written_elsewhere(desk, capsys):
    names = ["weight=1,style=a", "it's [here]", "plain"]
    for name in names:
        make_run(desk / name, {"size": len(name)})
    script("gallery")([*names, "output=new/choice.html"])
    assert capsys.readouterr().out.splitlines() == ["3 runs", "new/choice.html"]
    assert {path.name for path in Path("new").iterdir()} == {"choice.html"}
