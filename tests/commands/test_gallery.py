"""A gallery of runs: which are found, where they stand, what the page says, and bad input."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

from galleries import Tags, make_run, make_sweep
from helpers import check_error, refusal

from styletransfer.cli import script
from styletransfer.commands.gallery.cards import (
    LARGEST,
    make_cards,
    make_preview,
    ranks,
)
from styletransfer.commands.gallery.command import make_gallery
from styletransfer.commands.gallery.found import (
    FoundRun,
    Section,
    differing,
    find_runs,
    lay_out,
    main_axes,
)
from styletransfer.runs.folder import RunFolder
from styletransfer.settings import GalleryConfig


def made(*folders):
    return make_gallery(GalleryConfig(list(map(str, folders))))


def run(number=0, choices=None, **settings):
    typed = tuple(f"{key}={value}" for key, value in settings.items())
    record = RunFolder(Path(), "finished", settings, Path(), 1.0)
    return FoundRun(str(number), record, choices or {}, typed, None, ())


def axes_of(*runs):
    return [axis.key for axis in main_axes(runs, differing(runs))]


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


def test_only_keys_that_differ_are_axes():
    assert axes_of(run(size=3, output="a"), run(size=4, output="b")) == ["size"]
    assert axes_of(run(b=1, a=1), run(b=1, a=2), run(b=2, a=1)) == ["b", "a"]


def test_a_preset_stands_for_the_keys_that_it_sets():
    runs = [
        replace(
            run(choices={"experiment": name}, style=style, steps=3 if name == "bold" else 9),
            typed=(f"experiment={name}", f"style={style}"),
        )
        for name in ("bold", "faithful")
        for style in "ab"
    ]
    assert [axis.key for axis in differing(runs)] == ["experiment", "style", "steps"]
    assert axes_of(*runs) == ["experiment", "style"]
    without_record = [replace(each, choices={}, typed=None) for each in runs]
    assert axes_of(*without_record) == ["style", "steps"]


def test_values_as_they_are_shown():
    def order(key, *values):
        (axis,) = differing([run(**{key: value}) for value in values])
        return axis.order

    assert order("seed", 10, 9, 0.5) == ("0.5", "9", "10")
    assert order("style", "/x/a.jpg", "/y/a.jpg") == ("/x/a.jpg", "/y/a.jpg")
    assert order("style", ["/x/a.jpg", "/x/b.jpg"], "/x/a.jpg") == ("a.jpg, b.jpg", "a.jpg")
    assert order("protect", None, "/x/a.png") == ("null", "a.png")


def test_layouts():
    def sections(*runs):
        return lay_out(main_axes(runs, differing(runs)), len(runs))

    assert sections(run(size=4), run(size=3)) == [Section("", loose=(1, 0))]
    # Three weights go down, two sizes across; one cell is empty.
    grid = [run(weight=w, size=s) for w in (1, 2, 3) for s in (8, 9)][:-1]
    rows = (("1", (0, 1)), ("2", (2, 3)), ("3", (4, None)))
    assert sections(*grid) == [Section("", "weight", "size", ("8", "9"), rows)]
    # A third key makes groups.
    cube = [run(a=a, b=b, c=c) for a in (1, 2) for b in (1, 2) for c in (1, 2, 3)]
    assert [each.heading for each in sections(*cube)] == ["b 1", "b 2"]
    assert [(each.row_key, each.column_key) for each in sections(*cube)] == [("c", "a")] * 2
    # Two runs in one cell: a list.
    assert sections(*grid, grid[0])[0].rows == ()


def test_sort_order(tmp_path):
    make_sweep(tmp_path)
    (tmp_path / "4/metrics.jsonl").unlink()
    runs, _ = find_runs([tmp_path])
    every = differing(runs)
    main = main_axes(runs, every)
    orders = ranks(make_cards(runs, main, every), main)
    assert orders["total loss"] == [0, 1, 2, 3, 5, 4]  # without a loss: last
    assert orders["time"] == [5, 4, 3, 2, 1, 0]
    assert orders["style"] == [0, 1, 2, 3, 4, 5]
    assert orders["objective.content_weight"] == [4, 0, 2, 5, 1, 3]


def test_the_page(tmp_path):
    make_sweep(tmp_path / "weights")
    _, page = made(tmp_path / "weights")
    assert page == tmp_path / "weights/gallery.html"
    tags = Tags(page.read_text(encoding="utf-8"))
    pictures = [each for each in tags.all("img") if each.get("src")]
    assert len(pictures) == 6
    assert all(str(each["src"]).startswith("data:image/jpeg;base64,") for each in pictures)
    assert pictures[0]["alt"] == "style oil.jpg, objective.content_weight 0.5"
    for said in ("weights", "oil.jpg", "ink.jpg", "9.0 s", "styletransfer train"):
        assert said in tags.text
    assert "do not all measure the same thing" in tags.text
    for _, attributes in tags.seen:  # nothing is loaded, nothing runs but what the policy allows
        assert not {"style", "onclick", "onload"} & {*attributes}
        assert str(attributes.get("href", "data:")).startswith("data:")


def test_hostile_names_are_text(tmp_path):
    hostile = "</script><script>alert(1)</script>\"' onload=x & <b>"
    for number, text in enumerate((hostile, "{{ 7 * 7 }}")):
        make_run(tmp_path / f"<i>{number}", {"style": text, text: number}, status=text)
    (tmp_path / "<u>").mkdir()
    (tmp_path / "<u>/run.json").write_text("{")
    tags = Tags(made(tmp_path)[1].read_text(encoding="utf-8"))
    assert len(tags.all("script")) == 1
    assert not [each for each in tags.all("i") if "class" not in each]
    assert not tags.all("u")
    assert hostile in tags.text
    assert "{{ 7 * 7 }}" in tags.text
    (policy,) = (each["content"] for each in tags.all("meta") if "http-equiv" in each)
    assert re.match("default-src 'none'; img-src data:; style-src 'sha256-[^;']+'; ", policy or "")


def test_bad_input(desk, capsys):
    make_sweep(desk / "sweep")
    Path("empty").mkdir()
    before = sorted(desk.rglob("*"))
    for words, said in (
        ([], "name the folder of a sweep or of runs: styletransfer gallery FOLDER"),
        (["nowhere"], "nowhere is no folder; name that of a sweep, or of a run of train"),
        (["empty"], "there is no run of train in empty; name a sweep's folder, or a run's"),
        (["sweep", "output=a.png"], "output=a.png must end in .html"),
    ):
        assert said in refusal(capsys, "gallery", *words)
        assert sorted(desk.rglob("*")) == before


def test_a_page_of_several_folders_is_written_elsewhere(desk, capsys):
    names = ["weight=1,style=a", "it's [here]", "plain"]
    for name in names:
        make_run(desk / name, {"size": len(name)})
    script("gallery")([*names, "output=new/choice.html"])
    assert capsys.readouterr().out.splitlines() == ["3 runs", "new/choice.html"]
    assert {path.name for path in Path("new").iterdir()} == {"choice.html"}


def test_a_blind_page_shows_pairs_that_differ_in_one_key_alone(tmp_path):
    make_sweep(tmp_path)
    summary, page = make_gallery(GalleryConfig(str(tmp_path), blind="style"))
    assert (summary, page.name) == ("3 pairs of style", "blind.html")
    text = page.read_text()
    pairs = json.loads(text.partition('id="pairs">')[2].partition("</script>")[0])
    assert [pair["names"] for pair in pairs] == [["oil.jpg", "ink.jpg"]] * 3
    weights = {}
    for run in find_runs([tmp_path])[0]:
        settings, made = run.record.settings, make_preview(run.picture, LARGEST).uri
        weights.setdefault(settings["objective.content_weight"], set()).add(made)
    assert [set(pair["pictures"]) for pair in pairs] == list(weights.values())
    assert "oil" not in Tags(text).text

    for number in range(3):
        (tmp_path / str(number) / "pastiche.png").unlink()
    for key, said in (
        ("style", "no two pictures differ in style alone; sweep it: style=ONE,OTHER"),
        ("steps", "blind=steps does not differ .*; style, objective.content_weight does"),
    ):
        check_error(said, make_gallery, GalleryConfig(str(tmp_path), blind=key))
