"""What can be done with runs on disk: look, take their pictures away, go on, remove them."""

import asyncio
import shutil

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from styletransfer.runs.folder import CHECKPOINT, RECORD
from styletransfer.studio.refusal import RefusedError
from styletransfer.studio.runs import Kept, as_columns, losses
from styletransfer.studio.studio import Studio, jpeg, side, studio
from styletransfer.system.lock import is_locked

MEDIA_TYPES = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "tiff": "image/tiff",
}


async def list_runs(request: Request) -> Response:
    """Return the runs on disk, the newest first."""
    found = await asyncio.to_thread(studio(request).runs.all)
    return JSONResponse([kept.shown for kept in found])


async def get_picture(request: Request) -> Response:
    """Return the picture of a run, made small; of the one at work its latest."""
    here, id = studio(request), request.path_params["id"]
    job = here.desk.job
    if job is not None and job.id == id and here.desk.is_busy:
        if job.picture is None:
            raise RefusedError("the run has no picture yet", 404)
        return jpeg(job.picture)
    kept = await _find(here, id)
    return jpeg(await here.pictures.small(str(kept.picture), side(request)))


async def get_content(request: Request) -> Response:
    """Return the content of a run at the pastiche's size, made small."""
    here, id = studio(request), request.path_params["id"]
    kept = await _find(here, id)
    path = str(kept.content)
    if not kept.content.is_file():  # kept when the run ends
        chosen = kept.shown["settings"].get("content", "content-coffee")
        path = here.pictures.find(chosen or "").path
    return jpeg(await here.pictures.small(path, side(request)))


async def download(request: Request) -> Response:
    """Return the pastiche as a file, at full size and from its full depth."""
    here, kind = studio(request), request.query_params.get("format", "png")
    if kind not in MEDIA_TYPES:
        raise RefusedError(f"format must be one of {', '.join(MEDIA_TYPES)}")
    kept = await _find(here, request.path_params["id"])
    if not kept.picture.is_file():
        raise RefusedError("the run has no picture yet", 404)
    file = await here.answers.ask("converted", str(kept.picture), f".{kind}")
    name = f"pastiche_{kept.id}.{kind}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(file, media_type=MEDIA_TYPES[kind], headers=headers)


async def get_losses(request: Request) -> Response:
    """Return the losses of a run, a column for each name."""
    here, id = studio(request), request.path_params["id"]
    job, steps = here.desk.job, []
    if job is None or job.id != id or (job.folder / RECORD).exists():
        kept = await _find(here, id)
        steps = await asyncio.to_thread(losses, kept.folder)
    if job is not None and job.id == id and job.losses:  # which the disk may not have yet
        steps = [each for each in steps if each[0] < job.losses[0][0]] + job.losses
    return JSONResponse(as_columns(steps))


async def go_on(request: Request) -> Response:
    """Let a run that was stopped go on from its checkpoint."""
    here, id = studio(request), request.path_params["id"]
    kept = await _find(here, id)
    if not (kept.folder / CHECKPOINT).exists():
        raise RefusedError("the run has no checkpoint to go on from", 409)
    here.desk.go_on(kept.id, kept.folder, kept.shown["settings"], kept.typed or ())
    return JSONResponse({"id": id}, 202)


async def remove(request: Request) -> Response:
    """Remove a run of the studio's own folder."""
    here, id = studio(request), request.path_params["id"]
    kept = await _find(here, id)
    if not kept.own:
        raise RefusedError("that run lies in another folder; remove it there", 403)
    await here.desk.let_go(id)
    waits = any(job.id == id for job in here.desk.queue)
    if waits or is_locked(kept.folder):
        raise RefusedError("that run is being painted; stop it first", 409)
    await asyncio.to_thread(shutil.rmtree, kept.folder)
    here.desk.changed(runs=True)
    return JSONResponse({"id": id})


async def _find(here: Studio, id: str) -> Kept:
    return await asyncio.to_thread(here.runs.find, id)


ROUTES = [
    Route("/api/runs", list_runs),
    Route("/api/runs/{id}/picture", get_picture),
    Route("/api/runs/{id}/content", get_content),
    Route("/api/runs/{id}/download", download),
    Route("/api/runs/{id}/losses", get_losses),
    Route("/api/runs/{id}/resume", go_on, methods=["POST"]),
    Route("/api/runs/{id}/delete", remove, methods=["POST"]),
]
