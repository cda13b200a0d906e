"""What a run has left, read by whoever shows it: whole, half or damaged."""

import json

from helpers import check_error

from styletransfer.runs.folder import Step, read_error, read_run, read_steps, write_record

RECIPE = {"version": "1", "config": {"size": 32}}
DEEP = "[" * 10**5
GOOD = {"status": "finished", "picture": "/a.png", "seconds": 1, "config": {}}


def test_what_is_recorded_is_read(tmp_path):
    write_record(tmp_path, RECIPE, "finished", tmp_path / "out.png", seconds=1.5)
    run = read_run(tmp_path)
    assert (run.status, run.settings, run.seconds) == ("finished", {"size": 32}, 1.5)
    assert (run.output, run.pastiche) == (tmp_path / "out.png", tmp_path / "pastiche.png")
    assert run.content == tmp_path / "content_resized.png"
    assert run.typed is None
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/overrides.yaml").write_text("- size=32\n- seed=1\n")
    assert run.typed == ("size=32", "seed=1")
    (tmp_path / ".hydra/overrides.yaml").write_text(DEEP[:1000])
    assert run.typed is None


def test_a_record_that_cannot_be_written_is_one_line(tmp_path, caplog):
    (tmp_path / "run.json").mkdir()
    write_record(tmp_path, RECIPE, "running", tmp_path / "out.png")
    assert "it is a folder; add a file name; going on without" in caplog.text


def test_a_damaged_record_is_one_line_and_a_time_that_is_none_is_left_out(tmp_path):
    for text in (
        *("", "{", "[]", "3", "{}", DEEP, "\xff\xfe", '"\x00"'),
        *(json.dumps({k: v for k, v in GOOD.items() if k != key}) for key in ("picture", "config")),
        *(json.dumps(GOOD | {key: 3}) for key in ("picture", "config", "status")),
        json.dumps(GOOD | {"picture": "a\0b"}),
    ):
        (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
        check_error(r"run\.json is damaged; start afresh", read_run, tmp_path)
    text = json.dumps(GOOD | {"seconds": "@"})
    for seconds in ("1e400", '"3"', "null", "NaN", "1" * 400):
        (tmp_path / "run.json").write_text(text.replace('"@"', seconds))
        assert read_run(tmp_path).seconds is None
    (tmp_path / "run.json").unlink()
    for folder in (tmp_path, tmp_path / "nowhere"):
        check_error(r"is not the folder of a run: it holds no run\.json", read_run, folder)


def test_steps_that_can_be_read(tmp_path):
    assert [*read_steps(tmp_path)] == []
    rest = '"scale": 1, "width": 4, "height": 4'
    lines = [
        f'{{"step": 1, {rest}, "total": 2.5, "style/a": null, "content/a": Infinity, "x": "y"}}',
        *(f'{{"step": {n}, {rest}, "total": 1}}' for n in ("1e400", 10**30, 0, '"2"')),
        '{"step": 2, "total": 1}',
        DEEP,
        "nonsense",
        f'{{"step": 3, {rest}, "total": {10**400}}}',
        f'{{"step": 4, {rest}, "total": 1',
    ]
    (tmp_path / "metrics.jsonl").write_bytes("\n".join(lines).encode() + b"\xff")
    assert [*read_steps(tmp_path)] == [Step(1, 1, {"total": 2.5}), Step(3, 1, {})]


def test_why_a_job_failed(tmp_path):
    assert read_error(tmp_path) is None
    for text, reason in ((b"", None), (b" \n\n", None), (b"a\nb\n\n", "b"), (b"\xff", "\ufffd")):
        (tmp_path / "error.txt").write_bytes(text)
        assert read_error(tmp_path) == reason
