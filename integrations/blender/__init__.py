"""A panel in Blender's Image Editor: the studio paints an animation like frames that you painted.

"Render this frame to paint it" writes a frame into the folder `keys`. "Paint the animation like it"
renders a film, sends it with the painted frames, and shows the film that comes back.
"""

import time
from pathlib import Path
from threading import Thread

import bpy
from bpy.props import BoolProperty, IntProperty, PointerProperty, StringProperty

from .studio import paint_film

# Settings of Blender's output for a frame and for a film; Blender 4 has no media_type.
STILL = {"media_type": "IMAGE", "file_format": "PNG", "color_mode": "RGB", "color_depth": "8"}
MOVIE = {"media_type": "VIDEO", "file_format": "FFMPEG", "color_mode": "RGB"}
CODEC = {"format": "MPEG4", "codec": "H264", "constant_rate_factor": "LOSSLESS"}
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")


class Painting(Thread):
    """A Painting waits in a thread for the painted film."""

    current = None  # the Painting at work

    def __init__(self, *asked):
        super().__init__(daemon=True)
        self.asked, self.percent, self.is_stopped = asked, 0, False
        self.film = self.error = None

    def run(self):
        """Wait for the painted film, in the thread."""
        try:
            self.film = paint_film(*self.asked, self.tell)
        except Exception as error:  # it is told in Blender's own thread
            self.error = error

    def tell(self, percent):
        """Keep how far the studio is; return whether it has to stop."""
        self.percent = percent
        return self.is_stopped


class Waiting:
    """A Waiting is an operator whose `steps` yield while they wait; Blender can be used then."""

    @classmethod
    def poll(cls, context):
        """Return whether nothing is rendered or painted."""
        return not (Painting.current or bpy.app.is_job_running("RENDER"))

    def invoke(self, context, event):
        """Begin, from the panel."""
        self.work, manager = self.steps(context), context.window_manager
        self.timer = manager.event_timer_add(0.2, window=context.window)
        manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        """Go on five times a second, and draw the panel again."""
        if event.type == "TIMER":
            if context.area:
                context.area.tag_redraw()
            if not self.goes_on():
                context.window_manager.event_timer_remove(self.timer)
                return {"FINISHED"}
        return {"PASS_THROUGH"}

    def execute(self, context):
        """Do everything at once, from a script."""
        self.work = self.steps(context)
        while self.goes_on():
            time.sleep(0.1)
        return {"FINISHED"}

    def goes_on(self):
        """Go on to the next wait; return False at the end, or after an error, which is told."""
        try:
            next(self.work)
            return True
        except StopIteration:
            pass
        except Exception as error:
            self.report({"ERROR"}, str(error))
        return False


class RenderFrame(Waiting, bpy.types.Operator):
    """Render this frame into the folder keys, and show it. A frame that is there is only shown."""

    bl_idname, bl_label = "styletransfer.render_frame", "Render this frame to paint it"

    def steps(self, context):
        """Render the frame if its file is missing, and show the file."""
        scene, folder = context.scene, folder_of(context.scene)
        time_of(scene, scene.frame_current)
        path = folder / "keys" / f"{scene.frame_current:04d}.png"
        if not path.exists():
            yield from rendered(scene, path, STILL, write_still=True)
        show(context, path, "PAINT")


class PaintAnimation(Waiting, bpy.types.Operator):
    """Render the animation, let the studio paint it like the frames in the folder keys, show it."""

    bl_idname, bl_label = "styletransfer.paint_animation", "Paint the animation like it"

    def steps(self, context):
        """Render the animation if its film is missing, and wait for the painted film."""
        scene, folder = context.scene, folder_of(context.scene)
        settings, paintings = scene.styletransfer, painted_frames(scene, folder / "keys")
        film = folder / f"film {title(scene)}.mp4"
        if settings.again or not film.exists():
            yield from rendered(scene, film, MOVIE, animation=True)
        address = context.preferences.addons[__package__].preferences.address
        render = scene.render
        share = render.resolution_percentage / 100
        size = min(settings.size, int(share * max(render.resolution_x, render.resolution_y)))
        work = Painting(address, (film.name, film.read_bytes()), paintings, size)
        Painting.current = work
        try:
            work.start()
            while work.is_alive():
                yield
        finally:
            Painting.current, work.is_stopped = None, True
        if work.error:
            raise work.error
        if work.film:  # there is none if it was stopped before its beginning
            path = folder / time.strftime("painted %Y-%m-%d %H.%M.%S.mp4")
            path.write_bytes(work.film)
            show(context, path, "VIEW")
            self.report({"INFO"}, f"Painted: {path}")


class Stop(bpy.types.Operator):
    """End the painting, and keep the frames so far."""

    bl_idname, bl_label = "styletransfer.stop", "Stop"

    def execute(self, context):
        """Let the studio stop."""
        if Painting.current:
            Painting.current.is_stopped = True
        return {"FINISHED"}


def folder_of(scene):
    """Return the folder for frames and films (RuntimeError: it lies beside no file yet)."""
    if scene.styletransfer.folder.startswith("//") and not bpy.data.filepath:
        raise RuntimeError("Save the .blend file first, or choose a folder elsewhere.")
    return Path(bpy.path.abspath(scene.styletransfer.folder))


def title(scene):
    """Return the animation's frames and their rate: with others, a film has to be rendered anew."""
    step = f" step {scene.frame_step}" if scene.frame_step > 1 else ""
    rate = scene.render.fps / scene.render.fps_base
    return f"{scene.frame_start}-{scene.frame_end}{step}, {rate:g} fps"


def time_of(scene, number):
    """Return the middle of a frame's time in the film, in seconds (RuntimeError: not there)."""
    frames = range(scene.frame_start, scene.frame_end + 1, scene.frame_step)
    if number not in frames:
        raise RuntimeError(f"Frame {number} is none of the animation's: {title(scene)}.")
    return (frames.index(number) + 0.5) * scene.render.fps_base / scene.render.fps


def painted_frames(scene, keys):
    """Return time in the film -> (name, bytes) of the paintings in a folder.

    What was painted in Blender is saved first. (RuntimeError: there is none, or a name is wrong.)
    """
    for image in bpy.data.images:
        if image.is_dirty and Path(bpy.path.abspath(image.filepath)).parent == keys:
            image.save()
    found = {}
    for path in sorted(keys.glob("*")):
        if path.suffix.lower() in PICTURES:
            try:
                seconds = time_of(scene, int(path.stem))
            except ValueError:
                raise RuntimeError(f"Name {path} by its frame, such as 0012.png.") from None
            if seconds in found:
                raise RuntimeError(f"{found[seconds][0]} and {path.name} paint one frame.")
            found[seconds] = path.name, path.read_bytes()
    if not found:
        raise RuntimeError(f"There is no painted frame in {keys}: render one, and paint it.")
    return found


def rendered(scene, path, settings, **what):
    """Render to a path, and yield while Blender renders.

    Blender's output settings come back at the end. (RuntimeError: not everything is rendered.)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    render, ended = scene.render, []
    output = {"use_file_extension": True, "filepath": str(folder_of(scene) / "rendering")}
    pairs = (render, output), (render.image_settings, settings), (render.ffmpeg, CODEC)
    changes = [(owner, *one) for owner, some in pairs for one in some.items()]
    changes = [change for change in changes if hasattr(*change[:2])]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    note, handlers = lambda *_: ended.append(True), bpy.app.handlers.render_complete
    handlers.append(note)
    try:
        for change in changes:
            setattr(*change)
        how = "EXEC_DEFAULT" if bpy.app.background else "INVOKE_DEFAULT"
        bpy.ops.render.render(how, scene=scene.name, **what)
        while bpy.app.is_job_running("RENDER"):
            yield
        if not ended:
            raise RuntimeError("The rendering was stopped or failed.")
        made = render.frame_path() if "animation" in what else f"{render.filepath}.png"
        Path(made).replace(path)
    finally:
        handlers.remove(note)
        for change in before:
            setattr(*change)


def show(context, path, mode):
    """Show a picture or a film in the Image Editor whose panel was used."""
    image = bpy.data.images.load(str(path), check_existing=True)
    if not image.is_dirty:  # otherwise strokes would be lost
        image.reload()
    space = context.space_data
    if space and space.type == "IMAGE_EDITOR":
        space.image, space.ui_mode = image, mode
        user, scene = space.image_user, context.scene
        user.frame_duration, user.frame_start = max(image.frame_duration, 1), scene.frame_start
        user.use_auto_refresh = True


class Preferences(bpy.types.AddonPreferences):
    """The Preferences hold the studio's address."""

    bl_idname = __package__
    address: StringProperty(name="Studio", description="What python scripts/studio.py prints")


class Settings(bpy.types.PropertyGroup):
    """The Settings belong to a scene."""

    folder: StringProperty(
        name="Folder",
        subtype="DIR_PATH",
        default="//styletransfer/",
        description="Frames to paint lie in its folder keys, and films in it",
    )
    size: IntProperty(
        name="Longer side",
        subtype="PIXEL",
        default=960,
        min=1,
        description="Longer side of the painted film in pixels; more take longer",
    )
    again: BoolProperty(
        name="Render again",
        description="If off, the animation is rendered only if its film is missing",
    )


class Sidebar(bpy.types.Panel):
    """The Sidebar has the add-on's tab in the Image Editor."""

    bl_idname, bl_label = "STYLETRANSFER_PT_sidebar", "Paint by styletransfer"
    bl_space_type, bl_region_type, bl_category = "IMAGE_EDITOR", "UI", "Styletransfer"

    def draw(self, context):
        """Draw the settings and buttons, or how far the painting is."""
        layout, settings = self.layout, context.scene.styletransfer
        if work := Painting.current:
            told = "The studio stops" if work.is_stopped else f"The studio paints: {work.percent} %"
            layout.progress(factor=work.percent / 100, text=told)
            layout.operator(Stop.bl_idname)
            return
        layout.prop(context.preferences.addons[__package__].preferences, "address")
        layout.prop(settings, "folder")
        layout.operator(RenderFrame.bl_idname)
        layout.prop(settings, "size")
        layout.prop(settings, "again")
        layout.operator(PaintAnimation.bl_idname)


CLASSES = Preferences, Settings, RenderFrame, PaintAnimation, Stop, Sidebar


def register():
    """Add the panel to Blender; Blender calls it."""
    for one in CLASSES:
        bpy.utils.register_class(one)
    bpy.types.Scene.styletransfer = PointerProperty(type=Settings)


def unregister():
    """Remove the panel from Blender."""
    del bpy.types.Scene.styletransfer
    for one in reversed(CLASSES):
        bpy.utils.unregister_class(one)
