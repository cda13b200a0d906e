"""The add-on for Blender, with a stand-in for Blender, and with Blender's own module bpy."""

import importlib
import json
import os
import shlex
import subprocess
import sys
import time
import zipfile
from types import SimpleNamespace as Space

import pytest
from helpers import ROOT
from studio.blender import Blender
from studio.studios import Process

from styletransfer.films.read import Film

# A Python that has Blender's module bpy; this one by default.
PYTHON = os.environ.get("BPY_PYTHON", sys.executable)
# What an artist does, in Blender: install, render three frames, paint the second, and go on.
JOURNEY = """
import json, sys
import bpy
package, folder, address = sys.argv[1:]
bpy.ops.extensions.package_install_files(filepath=package, repo="user_default")
bpy.ops.preferences.addon_enable(module="cycles")
addon = bpy.context.preferences.addons["bl_ext.user_default.styletransfer"]
addon.preferences.address = address
scene, cube = bpy.context.scene, bpy.data.objects["Cube"]
scene.render.engine, scene.cycles.device = "CYCLES", "CPU"
scene.cycles.samples, scene.cycles.use_denoising = 1, False
scene.render.resolution_x, scene.render.resolution_y = 64, 48
scene.frame_start, scene.frame_end = 7, 9
for frame, turn in (7, 0.0), (9, 0.2):
    cube.rotation_euler[2] = turn
    cube.keyframe_insert("rotation_euler", frame=frame)
bpy.ops.wm.save_as_mainfile(filepath=f"{folder}/a.blend")
scene.frame_set(8)
before = scene.render.filepath, scene.render.image_settings.file_format
bpy.ops.styletransfer.render_frame()
image = bpy.data.images["0008.png"]
image.pixels = [1 - v if n % 4 < 3 else v for n, v in enumerate(image.pixels)]
bpy.ops.styletransfer.paint_animation()
assert before == (scene.render.filepath, scene.render.image_settings.file_format)
shown = next(image for image in bpy.data.images if image.name.startswith("painted"))
print(json.dumps([shown.name, shown.source, shown.frame_duration]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return the path of the add-on, as the command in the docs makes it."""
    text = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    command = next(line for line in text.splitlines() if "python -m zipfile" in line)
    path = tmp_path_factory.mktemp("addon") / "styletransfer_blender.zip"
    words = [str(path) if word == path.name else word for word in shlex.split(command)[1:]]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
    return path


@pytest.fixture
def blender(tmp_path):
    return Blender(tmp_path)


@pytest.fixture
def addon(package, blender, tmp_path, monkeypatch):
    """Return the add-on as Blender loads it; `addon.asked` is what the studio was asked."""
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path / "addons" / "styletransfer_blender")
    monkeypatch.syspath_prepend(tmp_path / "addons")
    monkeypatch.setitem(sys.modules, "bpy", blender.bpy)
    monkeypatch.setitem(sys.modules, "bpy.props", blender.props)
    for name in ("styletransfer_blender", "styletransfer_blender.studio"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    addon = importlib.import_module("styletransfer_blender")
    monkeypatch.setattr(addon, "paint_film", lambda *asked: setattr(addon, "asked", asked) or b"!")
    return addon


@pytest.fixture
def keys(tmp_path):
    """Return the folder of painted frames, which has one."""
    folder = tmp_path / "styletransfer" / "keys"
    folder.mkdir(parents=True)
    (folder / "0005.png").write_bytes(b"five")
    return folder


def errors(operator, blender):
    """Run an operator to its end; return what it reports as errors."""
    operator.execute(blender.context)
    return [text for kinds, text in getattr(operator, "said", ()) if kinds == {"ERROR"}]


def test_the_file_holds_what_blender_asks_for(package):
    with zipfile.ZipFile(package) as archive:
        assert set(archive.namelist()) == {"__init__.py", "blender_manifest.toml", "studio.py"}


def test_a_frame_is_rendered_and_shown_in_paint_mode(addon, blender, tmp_path):
    assert errors(addon.RenderFrame(), blender) == []
    ((settings, what),) = blender.renders
    assert (settings["file_format"], what) == ("PNG", {"write_still": True})
    path = tmp_path / "styletransfer" / "keys" / "0005.png"
    space = blender.context.space_data
    assert (space.image.filepath, space.ui_mode) == (str(path), "PAINT")


def test_a_frame_that_is_there_keeps_its_strokes(addon, blender, keys):
    image = blender.bpy.data.images.load(str(keys / "0005.png"), True)
    image.is_dirty = True
    assert errors(addon.RenderFrame(), blender) == []
    assert (blender.renders, image.loads) == ([], 0)
    assert (keys / "0005.png").read_bytes() == b"five"


def test_frames_are_sent_with_their_times_in_the_film(addon, blender, keys):
    (keys / "11.JPG").write_bytes(b"eleven")
    (keys / "11.xcf").write_bytes(b"layers")
    assert errors(addon.PaintAnimation(), blender) == []
    address, film, paintings, size, _ = addon.asked
    assert (address, size) == ("http://127.0.0.1:8000/?token=a", 48)
    assert film == ("film 3-11 step 2, 23.976 fps.mp4", b"rendered")
    named = {round(seconds * 24 / 1.001, 6): one for seconds, one in paintings.items()}
    assert named == {1.5: ("0005.png", b"five"), 4.5: ("11.JPG", b"eleven")}


def test_the_painted_film_is_kept_and_shown(addon, blender, keys):
    assert errors(addon.PaintAnimation(), blender) == []
    (painted,) = keys.parent.glob("painted *.mp4")
    space = blender.context.space_data
    assert (painted.read_bytes(), space.image.filepath) == (b"!", str(painted))
    assert (space.image_user.frame_duration, space.image_user.frame_start) == (4, 3)


def test_strokes_in_blender_are_saved_and_sent(addon, blender, keys):
    image = blender.bpy.data.images.load(str(keys / "0005.png"), True)
    image.is_dirty = True
    assert errors(addon.PaintAnimation(), blender) == []
    assert [*addon.asked[2].values()] == [("0005.png", b"strokes")]


def test_a_film_is_rendered_again_only_if_asked(addon, blender, keys):
    for again, count in (False, 1), (False, 1), (True, 2):
        blender.context.scene.styletransfer.again = again
        assert errors(addon.PaintAnimation(), blender) == []
        assert len(blender.renders) == count


@pytest.mark.parametrize("cancels", [False, True])
def test_the_output_settings_come_back(addon, blender, keys, cancels):
    blender.cancels, render = cancels, blender.output
    owners = render, render.image_settings, render.ffmpeg
    before = [dict(vars(owner)) for owner in owners]
    errors(addon.PaintAnimation(), blender)
    ((settings, _),) = blender.renders
    assert (settings["file_format"], settings["codec"]) == ("FFMPEG", "H264")
    assert [vars(owner) for owner in owners] == before
    assert blender.bpy.app.handlers.render_complete == []


def test_a_cancelled_rendering_is_no_film(addon, blender, keys):
    blender.cancels = True
    assert errors(addon.PaintAnimation(), blender) == ["The rendering was stopped or failed."]
    assert list(keys.parent.glob("film *")) == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no painted frame"),
        (["face.png"], "such as 0012.png"),
        (["0004.png"], "Frame 4 is none of the animation's: 3-11 step 2"),
        (["0005.png", "5.tif"], "0005.png and 5.tif paint one frame"),
    ],
)
def test_wrong_names_are_told_before_rendering(addon, blender, keys, names, said):
    (keys / "0005.png").unlink()
    for name in names:
        (keys / name).write_bytes(b"")
    (told,) = errors(addon.PaintAnimation(), blender)
    assert said in told
    assert blender.renders == []


def test_a_folder_beside_no_file_is_told(addon, blender):
    blender.bpy.data.filepath = ""
    for operator in addon.RenderFrame(), addon.PaintAnimation():
        (told,) = errors(operator, blender)
        assert told.startswith("Save the .blend file first")


def test_what_the_studio_says_is_told(addon, blender, keys, monkeypatch):
    def refused(*_):
        raise RuntimeError("it is no film")

    monkeypatch.setattr(addon, "paint_film", refused)
    assert errors(addon.PaintAnimation(), blender) == ["it is no film"]
    assert addon.PaintAnimation.poll(None)  # one can try again


def test_blender_can_be_used_and_stop_keeps_the_film(addon, blender, keys, monkeypatch):
    def paint(*asked):
        while not asked[-1](25):
            time.sleep(0.01)
        return b"so far"

    monkeypatch.setattr(addon, "paint_film", paint)
    blender.bpy.app.background, operator = False, addon.PaintAnimation()
    assert operator.invoke(blender.context, None) == {"RUNNING_MODAL"}
    seen = []
    while operator.modal(blender.context, Space(type="TIMER")) != {"FINISHED"}:
        time.sleep(0.01)
        assert len(seen) < 3000, "it was stopped in vain"
        seen.append(addon.Painting.current and addon.Painting.current.percent)
        if seen[-1] == 25:
            assert not addon.RenderFrame.poll(None)
            addon.Stop().execute(blender.context)
    assert (seen[0], seen[-1], blender.timers) == (None, 25, [])  # it rendered first
    assert next(keys.parent.glob("painted *.mp4")).read_bytes() == b"so far"


@pytest.mark.slow
def test_blender_itself_paints_like_a_painted_frame(package, tmp_path):
    if subprocess.run([PYTHON, "-c", "import bpy"], capture_output=True).returncode:
        pytest.skip("needs Blender's module bpy; BPY_PYTHON can name a Python that has it")
    studio = Process(tmp_path, "open=false")
    try:
        words = str(package), str(tmp_path), studio.address
        environment = os.environ | {"BLENDER_USER_RESOURCES": str(tmp_path / "blender")}
        options = {"env": environment, "capture_output": True, "text": True}
        ran = subprocess.run([PYTHON, "-c", JOURNEY, *words], **options)
    finally:
        studio.close()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    name, *rest = json.loads(next(line for line in ran.stdout.splitlines() if line[:1] == "["))
    assert rest == ["MOVIE", 3]
    shots = []
    for path in next(tmp_path.glob("*/film *.mp4")), tmp_path / "styletransfer" / name:
        with Film(path) as film:
            shots.append([frame.image for frame in film.frames()])
    for photo, painted in zip(*shots, strict=True):  # the painted frame is the negative
        assert float((1 - photo - painted).abs().mean()) < 0.05 < float(photo.std())
