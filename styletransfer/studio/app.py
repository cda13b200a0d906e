"""The addresses of the studio, and what each answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from styletransfer.errors import UserError
from styletransfer.studio import lessons, pictures
from styletransfer.studio.access import Access
from styletransfer.studio.asked import command_of
from styletransfer.studio.form import form
from styletransfer.studio.job_routes import ROUTES as JOB_ROUTES
from styletransfer.studio.live import live
from styletransfer.studio.refusal import RefusedError, refused
from styletransfer.studio.run_routes import ROUTES as RUN_ROUTES
from styletransfer.studio.studio import Studio, body, jpeg, side, studio

PAGE = Path(__file__).parent / "page"


def make_app(opened: Studio, port: int, token: str) -> Starlette:
    """Return the application; starting it starts the studio's processes.

    Args:
        opened: what it serves.
        port: of 127.0.0.1.
        token: secret, of the printed address.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        opened.open()
        try:
            yield
        finally:
            await opened.close()

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/api/form", get_form),
            Route("/api/pictures", list_pictures),
            Route("/api/pictures", take_picture, methods=["POST"]),
            Route("/api/pictures/{id}", get_picture),
            Route("/api/check", check, methods=["POST"]),
            *JOB_ROUTES,
            *RUN_ROUTES,
            Route("/api/lessons", ask_lesson, methods=["POST"]),
            Route("/api/lessons/{id}", get_lesson),
            WebSocketRoute("/live", live),
            Mount("/static", StaticFiles(directory=PAGE)),
        ],
        middleware=[Middleware(Access, port=port, token=token)],
        exception_handlers={RefusedError: refused, UserError: refused},
        lifespan=lifespan,
    )
    app.state.studio, app.state.desk = opened, opened.desk
    return app


async def page(request: Request) -> Response:
    """Return the page."""
    return FileResponse(PAGE / "index.html")


async def get_form(request: Request) -> Response:
    """Return what the page is made of."""
    return JSONResponse(await asyncio.to_thread(form, studio(request).pictures))


async def list_pictures(request: Request) -> Response:
    """Return the pictures that can be chosen."""
    return JSONResponse([entry.shown for entry in studio(request).pictures.all])


async def take_picture(request: Request) -> Response:
    """Keep a picture that was dropped on the page."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared[:20]) > pictures.LARGEST:
        raise RefusedError(
            f"the picture has more than {pictures.LARGEST >> 20} MiB; shrink it", 413
        )
    name = request.query_params.get("name", "")
    entry = await studio(request).pictures.take(name, request.stream())
    shown = {key: entry.shown[key] for key in ("id", "name", "width", "height")}
    return JSONResponse(shown)


async def get_picture(request: Request) -> Response:
    """Return a picture, made small; a bundled one is small as it is, and there at once."""
    here, longest = studio(request).pictures, side(request)
    entry = here.find(request.path_params["id"])
    if entry.kind != "upload":
        return FileResponse(entry.path)
    return jpeg(await here.small(entry.path, longest))


async def check(request: Request) -> Response:
    """Say which command line makes the picture that is asked for, or what is wrong."""
    asked = await studio(request).ask((await body(request)).get("settings"))
    return JSONResponse({"command": command_of(asked.overrides)})


async def ask_lesson(request: Request) -> Response:
    """Begin a lesson."""
    asked = await studio(request).ask((await body(request)).get("settings"))
    return JSONResponse({"id": studio(request).lessons.ask(asked)}, 202)


async def get_lesson(request: Request) -> Response:
    """Return a lesson's page, which may do nothing but show itself."""
    text = studio(request).lessons.find(request.path_params["id"])
    if text is None:
        return JSONResponse({"status": "working"}, 202)
    return HTMLResponse(text, headers={"content-security-policy": lessons.POLICY})
