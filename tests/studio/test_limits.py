"""Limits of time and of work at once."""

from types import SimpleNamespace

from studios import opened

from styletransfer.studio import guide


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


def test_a_look_takes_a_few_styles(tmp_path):
    with opened(tmp_path) as client:
        asked = {"content": "content-coffee", "style": ["style-oil"] * 200}
        refused = client.get("/api/look", params=asked)
        assert (refused.status_code, refused.json()["key"]) == (400, None)
        assert "at most 8 styles" in refused.json()["error"]
