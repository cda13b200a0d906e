"""What can be done with runs that are being painted or wait."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from styletransfer.studio.refusal import RefusedError
from styletransfer.studio.studio import body, studio


async def submit(request: Request) -> Response:
    """Paint a new picture, or let it wait."""
    here = studio(request)
    asked = await here.ask((await body(request)).get("settings"))
    return JSONResponse({"id": here.desk.submit(asked).id}, 202)


async def act(request: Request) -> Response:
    """Do something with a run that is being painted."""
    here, id = studio(request), request.path_params["id"]
    said = await body(request)
    match request.path_params["action"]:
        case "pause" | "resume" | "stop" | "snapshot" as action:
            here.desk.act(id, action)
        case "steer":
            asked = await here.ask(said.get("settings"))
            here.desk.act(id, "steer", config=asked.config)
        case "cancel":
            here.desk.cancel(id)
        case "undo":
            moment = said.get("moment")
            if not isinstance(moment, int) or isinstance(moment, bool):
                raise RefusedError("moment must be a number")
            here.desk.act(id, "undo", moment=moment)
        case _:
            raise RefusedError("there is no such action", 404)
    return JSONResponse({"id": id}, 202)


ROUTES = [
    Route("/api/jobs", submit, methods=["POST"]),
    Route("/api/jobs/{id}/{action}", act, methods=["POST"]),
]
