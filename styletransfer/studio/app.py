"""The studio's web application: its state, its routes, and their handlers."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from styletransfer.errors import UserError
from styletransfer.films.formats import is_film
from styletransfer.formats.folders import film_and_place
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.runs.record import CHECKPOINT, CONTENT, PASTICHE
from styletransfer.settings import each
from styletransfer.settings.changes import with_values
from styletransfer.studio import checks, pictures, reader, runner
from styletransfer.studio.access import Access, PlainJson, RefusedError
from styletransfer.studio.controls import CONTROLS
from styletransfer.studio.form import (
    SECONDS,
    RunRequest,
    command_of,
    default_config,
    form,
    network_values,
    read_request,
    read_values,
    recalled,
)
from styletransfer.studio.queue import RunQueue
from styletransfer.studio.runs import FILM, PREVIEW, StoredRun, StoredRuns
from styletransfer.studio.viewers import live
from styletransfer.system.locks import is_locked

PAGE = Path(__file__).parent / "page"
FORMATS = ("png", "jpeg", "webp", "tiff")  # formats of downloads
# Largest size in bytes of a request's JSON body.
LARGEST = 64 * 2**10
# Headers of a picture that the browser may cache: a different picture has a different address.
KEPT = {"cache-control": "private, max-age=31536000, immutable"}
# Seconds that the server, before it ends, waits at most for the current run to be saved.
PATIENCE = 60.0


class Studio:
    """Studio holds the server's state, and two processes: one reads files, the other one paints.

    Runs and pictures are stored in `folder`. The painting process, `runner.py`, calls `paint`.
    """

    def __init__(self, folder: Path, paint: Any = runner.main) -> None:
        self.reader = reader.Reader()
        self.pictures = pictures.PictureShelf(folder / "pictures", self.reader)
        self.runs = StoredRuns(folder, self.pictures)
        self.queue = RunQueue(folder, self.pictures, paint)

    @asynccontextmanager
    async def opened(self, app: Starlette) -> AsyncIterator[None]:
        """Start both processes; at the end, save the current run and end both processes."""
        self.reader.start()
        self.queue.runner.start()
        try:
            yield
        finally:
            self.reader.close()
            await self.queue.close(PATIENCE)


def make_app(studio: Studio, port: int, token: str, near: Sequence[str] = ()) -> Starlette:
    """Return the application, which starts and ends the processes of `studio`.

    `Access` checks the other arguments in each request.
    """
    app = Starlette(
        routes=[
            Route("/", lambda request: FileResponse(PAGE / "index.html")),
            Route("/api/form", get_form),
            Route("/api/pictures", list_pictures),
            Route("/api/pictures", take_picture, methods=["POST"]),
            Route("/api/pictures/{id}", get_picture),
            Route("/api/pictures/{id}/delete", remove_picture, methods=["POST"]),
            Route("/api/pictures/{id}/{part}", get_part),
            Route("/api/look", get_look),
            Route("/api/check", check, methods=["POST"]),
            Route("/api/queue", submit, methods=["POST"]),
            Route("/api/queue/{id}", get_entry),
            Route("/api/queue/{id}/{action}", act, methods=["POST"]),
            Route("/api/runs", list_runs),
            Route("/api/runs/{id}/{part}", get_run),
            Route("/api/runs/{id}/{action}", change_run, methods=["POST"]),
            WebSocketRoute("/live", live),
            Mount("/static", StaticFiles(directory=PAGE)),
        ],
        middleware=[Middleware(Access, port=port, token=token, near=near)],
        exception_handlers={
            UserError: refuse,
            ClientDisconnect: lambda request, error: Response(),  # nobody receives this response
        },
        lifespan=studio.opened,
    )
    app.state.studio = studio
    return app


async def refuse(request: Request, error: Any) -> Response:
    """Return the response to a request that ended in a UserError: its message and key as JSON.

    Pictures have their names in the message, in place of their paths and ids.
    """
    said = {"error": _studio(request).pictures.named(str(error)), "key": error.key}
    return PlainJson(said, getattr(error, "status", 422))


async def get_form(request: Request) -> Response:
    """Return the page's groups of controls and its presets; see `form.form`."""
    return PlainJson(await asyncio.to_thread(form, _studio(request).pictures))


async def list_pictures(request: Request) -> Response:
    """Return the pictures and films that can be chosen on the page."""
    return PlainJson([picture.shown for picture in _studio(request).pictures.all])


async def take_picture(request: Request) -> Response:
    """Store an uploaded picture; return its description, and settings if its file holds any."""
    name, purpose = (request.query_params.get(key, "") for key in ("name", "purpose"))
    if purpose not in ("", *CONTROLS):
        raise RefusedError("purpose must be a key of the page")
    studio = _studio(request)
    taken = await studio.pictures.take(name, purpose, request.stream())
    shown = taken.shown
    with suppress(UserError):  # the picture is stored, even if the reader fails
        if recipe := await studio.reader.ask(reader.recipe, taken.path, first=True):
            shown["recipe"] = await asyncio.to_thread(recalled, recipe, studio.pictures)
    return PlainJson(shown)


async def get_picture(request: Request) -> Response:
    """Return a small JPEG of an uploaded picture, or the file of a bundled one."""
    picture = _studio(request).pictures.find(request.path_params["id"])
    if picture.kind != "upload":
        return FileResponse(picture.path, headers=KEPT)
    return await _small(request, Path(picture.path))


async def get_part(request: Request) -> Response:
    """Return a film, or, if the part is "frame", its frame at a given time as a PNG."""
    film = _studio(request).pictures.find(request.path_params["id"])
    part = request.path_params["part"]
    if part not in ("film", "frame") or not is_film(film.path):
        raise RefusedError("a picture has no such part", 404)
    if part == "film":
        return FileResponse(film.path, headers=KEPT)
    at = _asked(request, "at", SECONDS, "", "a time in seconds")
    frame = await _studio(request).reader.ask(reader.frame, film.path, f"{at}s")
    return Response(frame, media_type="image/png", headers=KEPT)


async def remove_picture(request: Request) -> Response:
    """Remove an uploaded picture (RefusedError: the current or a waiting run needs it)."""
    studio, id = _studio(request), request.path_params["id"]
    if studio.queue.needs(id):
        raise RefusedError("a picture is being painted from it; wait until that ends", 409)
    studio.pictures.remove(id)
    return PlainJson({"id": id})


async def get_look(request: Request) -> Response:
    """Return a sketch, a small picture that a style network paints quickly, as a JPEG.

    The query's "settings" are a JSON object. See `reader.look`. With "trial" in the query, return a
    small picture of `train` instead; see `checks.trial`.
    """
    studio, asked = _studio(request), request.query_params
    values = read_values(_object(asked.get("settings", "")), studio.pictures)
    if "trial" in asked:
        made = await studio.reader.ask(checks.trial, with_values(default_config(), values))
    else:
        config = with_values(ApplyConfig(), network_values(values))
        side = _side(request)
        is_first = side > reader.SIDES[0]  # the large sketch overtakes the small ones
        side = min(side, reader.LOOK)
        made = await studio.reader.ask(reader.look, config, side, first=is_first)
    return Response(made, media_type="image/jpeg", headers=KEPT)


async def check(request: Request) -> Response:
    """Return a run's command line, a warning or None, and the expected seconds (None: unknown)."""
    asked, cost = await _checked(request)
    pace, work = _studio(request).queue.pace, cost.get("work")
    seconds = pace * work if pace and work else None
    told = {"command": command_of(asked.overrides, name=asked.command), "seconds": seconds}
    return PlainJson(told | {"warning": cost.get("warning")})


async def submit(request: Request) -> Response:
    """Append a new run, or a sketch, to the queue; return its id."""
    asked, _ = await _checked(request)
    record = await asyncio.to_thread(asked.record)
    return PlainJson({"id": _studio(request).queue.submit(asked, record)}, 202)


async def get_entry(request: Request) -> Response:
    """Return the state of a run that waits, is being painted or has ended."""
    entry = _studio(request).queue.find(request.path_params["id"])
    return PlainJson((entry or await _run(request)).shown)


async def act(request: Request) -> Response:
    """Carry out an action on a run.

    "pause", "resume", "stop" and "steer" (change settings) act on the run that is being painted,
    "hurry" (move forward in the queue) and "cancel" on a waiting run.
    """
    studio, id = _studio(request), request.path_params["id"]
    queue = studio.queue
    match request.path_params["action"]:
        case "pause" | "resume" | "stop" as action:
            queue.act(id, action)
        case "steer":
            changes = read_values((await _body(request)).get("settings"), studio.pictures)
            return PlainJson({"number": queue.steer(id, changes)}, 202)
        case "hurry" | "cancel" as action:
            queue.move(id, hurry=action == "hurry")
        case _:
            raise RefusedError("there is no such action", 404)
    return PlainJson({"id": id}, 202)


async def list_runs(request: Request) -> Response:
    """Return the runs on disk, the newest first."""
    runs = await asyncio.to_thread(_studio(request).runs.all)
    return PlainJson([run.shown for run in runs])


async def get_run(request: Request) -> Response:
    """Return one of a run's parts: "picture", "content", "film" or "download".

    "download" is the pastiche at full size, in the format and with the opacity over its photograph
    that the query names.
    """
    run = await _run(request)
    match request.path_params["part"]:
        case "picture":
            return await _small(request, run.part(PREVIEW if run.shown["is_preview"] else PASTICHE))
        case "content":
            return await _small(request, run.part(CONTENT))
        case "film":
            return FileResponse(run.part(FILM))
        case "download":
            formats = f"one of {', '.join(FORMATS)}"
            kind = _asked(request, "format", "|".join(FORMATS), "png", formats)
            share = r"[01]|0?\.[0-9]{1,9}"
            opacity = float(_asked(request, "opacity", share, "1", "a number from 0 to 1"))
            parts = str(run.part(PASTICHE)), f".{kind}", str(run.part(CONTENT)), opacity
            file = await _studio(request).reader.ask(reader.converted, *parts)
            # This header names no file, so that the browser uses the name in the page's link.
            headers = {"content-disposition": "attachment"}
            return Response(file, media_type=f"image/{kind}", headers=headers)
    raise RefusedError("a run has no such part", 404)


async def change_run(request: Request) -> Response:
    """Append a stopped run to the queue again, or delete a run."""
    studio, run = _studio(request), await _run(request)
    match request.path_params["action"]:
        case "resume":
            if not (run.record.folder / CHECKPOINT).exists():
                raise RefusedError("the run has no checkpoint to go on from", 409)
            studio.queue.go_on(run)
            return PlainJson({"id": run.id}, 202)
        case "delete":
            if studio.queue.has(run.id) or is_locked(run.record.folder):
                raise RefusedError("that picture is being painted; stop it first", 409)
            kept = await asyncio.to_thread(run.delete)  # names of files that stay
            studio.queue.changed(runs=True)
            return PlainJson({"id": run.id, "kept": kept})
    raise RefusedError("there is no such action", 404)


def _studio(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


async def _run(request: Request) -> StoredRun:
    return await asyncio.to_thread(_studio(request).runs.find, request.path_params["id"])


async def _checked(request: Request) -> tuple[RunRequest, dict[str, Any]]:
    """Return the run that a request describes, and the dict that its check returns."""
    studio, body = _studio(request), await _body(request)
    sketch, shelf = body.get("sketch") is True, studio.pictures
    asked = await asyncio.to_thread(read_request, body.get("settings"), shelf, sketch)
    config = asked.shown or asked.config
    named = (config.content, *each(config.style), *each(config.style_source))
    sizes = {path: shelf.size_of(film_and_place(path)[0]) for path in named}
    question: Any = (checks.check, config, sizes)
    if asked.command == "apply":
        question = (checks.check_film, asked.config, sizes[config.content])
    return asked, await studio.reader.ask(*question, first=True)


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body (RefusedError: no JSON object, or too large)."""
    text = bytearray()
    async for piece in request.stream():
        text += piece
        if len(text) > LARGEST:
            raise RefusedError("the request is too long", 413)
    return _object(bytes(text) or b"{}")


def _object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a text (RefusedError: there is none)."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError("the request is not JSON") from error
    if not isinstance(body, dict):
        raise RefusedError("the request must be a JSON object")
    return body


async def _small(request: Request, file: Path) -> Response:
    """Return the small or the large JPEG of a picture, as the request asks; see `_side`."""
    side = _side(request)
    if not reader.is_copied(file):
        await _studio(request).reader.ask(reader.copy, file)
    small, large = reader.copies_of(file)
    return FileResponse(small if side <= reader.SIDES[0] else large, headers=KEPT)


def _asked(request: Request, name: str, pattern: str, default: str, what: str) -> str:
    """Return a value of the request's query (RefusedError: it does not fully match `pattern`)."""
    if not re.fullmatch(pattern, text := request.query_params.get(name, default)):
        raise RefusedError(f"{name} must be {what}")
    return text


def _side(request: Request) -> int:
    """Return the length in pixels of the longer side that a request asks for; default: 1600."""
    return int(_asked(request, "side", "[0-9]{1,6}", "1600", "a number of pixels"))
