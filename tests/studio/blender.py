"""A stand-in for Blender's module bpy: it holds what the add-on uses, and renders plain bytes."""

from pathlib import Path
from types import ModuleType
from types import SimpleNamespace as Space


class Operator:
    """Operator keeps what it reports as pairs (kinds, text)."""

    def report(self, kinds, text):
        self.said = [*getattr(self, "said", ()), (kinds, text)]


class Image:
    """Image is a loaded file; one that is dirty has strokes that are not saved."""

    is_dirty, frame_duration = False, 4

    def __init__(self, path):
        self.filepath, self.loads = path, 0

    def reload(self):
        self.loads += 1

    def save(self):
        Path(self.filepath).write_bytes(b"strokes")
        self.is_dirty = False


class Blender:
    """Blender is a session with one scene; `bpy` and `props` are its modules.

    `renders` lists what was rendered: (settings of the output, what was asked). With `cancels`, a
    rendering ends before its time. In the window, each rendering is at work for two looks.
    """

    def __init__(self, folder, background=True):
        self.renders, self.cancels, self.looks, self.images = [], False, 0, []
        self.bpy, self.props = ModuleType("bpy"), ModuleType("bpy.props")
        for name in ("Bool", "Int", "Pointer", "String"):
            setattr(self.props, f"{name}Property", lambda **given: given.get("default"))
        names = ("AddonPreferences", "PropertyGroup", "Panel", "Scene")
        types = {name: type(name, (), {}) for name in names} | {"Operator": Operator}
        self.bpy.types, self.bpy.props = Space(**types), self.props
        handlers = Space(render_complete=[])
        self.bpy.app = Space(background=background, handlers=handlers, is_job_running=self.look)
        self.bpy.ops = Space(render=Space(render=self.render))
        self.bpy.path = Space(abspath=lambda path: path.replace("//", f"{folder}/"))
        self.bpy.data = Space(filepath=f"{folder}/a.blend", images=Images(self.images))
        output = Space(file_format="OPEN_EXR", color_mode="RGBA", color_depth="16")
        codec = Space(format="MKV", codec="AV1", constant_rate_factor="NONE")
        self.output = Space(filepath="/tmp/", use_file_extension=False, fps=24, fps_base=1.001)
        self.output.image_settings, self.output.ffmpeg = output, codec
        self.output.frame_path = lambda: f"{self.output.filepath}0003-0011.mp4"
        self.output.resolution_x, self.output.resolution_y = 96, 64
        self.output.resolution_percentage = 50
        settings = Space(folder="//styletransfer/", size=960, again=False)
        scene = {"name": "Scene", "render": self.output, "styletransfer": settings}
        scene |= {"frame_start": 3, "frame_end": 11, "frame_step": 2, "frame_current": 5}
        addon = Space(preferences=Space(address="http://127.0.0.1:8000/?token=a"))
        self.timers = []
        manager = Space(
            event_timer_add=lambda *_, **__: self.timers.append(0),
            event_timer_remove=lambda _: self.timers.pop(),
            modal_handler_add=lambda _: None,
        )
        self.context = Space(
            scene=Space(**scene),
            preferences=Space(addons={"styletransfer_blender": addon}),
            space_data=Space(type="IMAGE_EDITOR", image=None, ui_mode="VIEW", image_user=Space()),
            area=Space(tag_redraw=lambda: None),
            window=None,
            window_manager=manager,
        )

    def look(self, _):
        self.looks -= 1
        return self.looks >= 0

    def render(self, how, scene, **what):
        render = self.output
        settings = {**vars(render.image_settings), **vars(render.ffmpeg)}
        self.renders.append((settings, what))
        made = render.frame_path() if "animation" in what else f"{render.filepath}.png"
        Path(made).write_bytes(b"rendered")
        if not self.cancels:
            for note in self.bpy.app.handlers.render_complete:
                note()
        self.looks = 2 if how == "INVOKE_DEFAULT" else 0


class Images(list):
    """Images are the loaded ones."""

    def __init__(self, images):
        super().__init__(images)

    def load(self, path, check_existing):
        found = next((image for image in self if image.filepath == path), None)
        if found is None:
            self.append(found := Image(path))
        return found
