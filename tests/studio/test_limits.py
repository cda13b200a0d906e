"""What is counted: time left, and work at once."""

from types import SimpleNamespace

from studios import opened

from styletransfer.studio import app, guide, reader


def test_the_time_left_is_that_of_the_pixels_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guide, "time", SimpleNamespace(monotonic=lambda: now[0]))
    scales = [SimpleNamespace(steps=4, size=(2, 2)), SimpleNamespace(steps=4, size=(4, 4))]
    run, clock = SimpleNamespace(scales=scales), guide.Clock()
    left = []
    for step, seconds in ((1, 9.0), (2, 1.0)):  # the first step of a scale is slow
        now[0] += seconds
        iterate = SimpleNamespace(step=step, steps=8, scale=1)
        clock.step(run, iterate)
        left.append(clock.left(run, iterate))
        now[0] += 100.0  # it is paused
        clock.go_on()
    assert left == [9.0 * (3 * 4 + 4 * 16) / 4, 1.0 * (2 * 4 + 4 * 16) / 4]
    assert clock.seconds == 10.0


def test_no_more_is_worked_on_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST", 0)
    monkeypatch.setattr(app, "MOST", 0)
    with opened(tmp_path) as client:
        assert client.post("/api/check", json={"settings": {}}).status_code == 429
        assert client.post("/api/pictures", content=b"GIF8").status_code == 429
