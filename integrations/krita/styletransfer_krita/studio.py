"""Asks a studio for a pastiche, with the standard library of Python 3.8, which Krita may have.

The add-on for Blender has the same file.
"""

import json
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from urllib.parse import quote, urlsplit

ENDED = ("finished", "stopped", "failed")


class AddressError(Exception):
    """Raised if no studio answers at an address, or if it has another token."""


def paint(address, photograph, painting, size, tell, source=None):
    """Return the pastiche of two pictures, each (name, bytes), as the bytes of a PNG.

    With a third picture `source`, of which `painting` is a painting, `photograph` is painted in
    the same way: pixels of the painting are copied. The pastiche's longer side has `size` pixels.
    `tell(percent)` is called several times a second. When it returns True, the run is stopped, and
    its picture so far is returned; a run that has not begun is taken from the queue, and None is
    returned.

    Raises:
        AddressError: `address` is not what `python scripts/studio.py` prints.
        RuntimeError: the studio refuses a picture or the run.
    """
    settings = {"size": size}
    pictures = {"content": photograph, "style": painting, "style_source": source}
    for key, picture in pictures.items():
        if picture:
            settings[key] = _sent(address, key, *picture)
    return _painted(address, settings, tell, "download")


def paint_film(address, film, paintings, size, tell):
    """Return a film, (name, bytes), painted like some of its frames, as the bytes of an MP4 file.

    `paintings` maps the times of these frames, in seconds after the film's start, to their
    paintings, each (name, bytes). A stopped film has the frames so far. All else is as in `paint`.
    """
    id = _sent(address, "content", *film)
    settings = {"size": size, "content": id}
    settings["style"] = [_sent(address, "style", *one) for one in paintings.values()]
    settings["style_source"] = [f"{id}:{seconds:.6f}s" for seconds in paintings]
    return _painted(address, settings, tell, "film")


def _sent(address, purpose, name, picture):
    """Return the id of a picture or a film, whose bytes are sent for the setting `purpose`."""
    upload = f"/api/pictures?purpose={purpose}&name={quote(name)}"
    return json.loads(_ask(address, upload, picture))["id"]


def _painted(address, settings, tell, part):
    """Return the bytes of what a run in `settings` makes, or None; `tell` is that of `paint`."""
    asked = json.dumps({"settings": settings})
    id = json.loads(_ask(address, "/api/queue", asked))["id"]
    while (run := json.loads(_ask(address, f"/api/queue/{id}")))["status"] not in ENDED:
        percent = 100 * run["step"] // run["steps"] if run["steps"] else 0
        if tell(percent) and run["status"] != "stopping":
            action = "cancel" if run["status"] == "queued" else "stop"
            with suppress(RuntimeError):  # it has begun or ended meanwhile
                _ask(address, f"/api/queue/{id}/{action}", "{}")
                if action == "cancel":
                    return None
        time.sleep(0.2)
    if run["error"]:
        raise RuntimeError(run["error"])
    return _ask(address, f"/api/runs/{id}/{part}")


def _ask(address, path, body=None):
    """Return the body of the answer to a request; with a body it is a POST."""
    try:
        place = urlsplit(address.strip())
        cookie = f"studio_{place.port}={place.query.partition('token=')[2]}"
        headers = {"Cookie": cookie, "Origin": f"http://{place.netloc}"}
        with closing(HTTPConnection(place.netloc, timeout=120)) as connection:
            connection.request("POST" if body else "GET", path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
        if answer.status < 400:
            return said
        problem = json.loads(said)["error"]
    except (OSError, HTTPException, ValueError, LookupError) as error:
        raise AddressError("No studio answers at this address: start it.") from error
    if answer.status == 403:
        raise AddressError("The studio at this address has another token.")
    raise RuntimeError(problem)
