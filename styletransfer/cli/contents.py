"""A folder of pictures, or a pattern, where a key takes one picture: one job for each."""

import glob
import os
import re
from collections.abc import Collection

from styletransfer.errors import UserError
from styletransfer.pictures.folders import EXTENSIONS, in_folder
from styletransfer.settings.paths import quoted


def each_picture(override: str, keys: Collection[str], *, sweep: bool) -> str:
    """Return KEY=VALUE with each picture that VALUE stands for, as a sweep takes them.

    Left as it is where KEY is none of `keys`, or VALUE neither a folder nor a pattern with * or ?;
    a file of that very name is a file. In a sweep each of the values between commas is looked at.

    Raises:
        UserError: there is no picture in the folder, or none that the pattern fits.
    """
    key, _, value = override.partition("=")
    if key not in keys or value[:1] in ("'", '"'):
        return override
    values = value.split(",") if sweep else [value]
    found = [_pictures(override, each) for each in values]
    if not any(found):
        return override
    names = [
        name
        for each, several in zip(values, found, strict=True)
        for name in ([each] if several is None else several)
    ]
    return f"{key}=" + ",".join(map(quoted, names))


def _pictures(override: str, value: str) -> list[str] | None:
    """Return the pictures of a folder or a pattern, in the order of their names; None for a file.

    Brackets are letters, as in any file name here.
    """
    name = os.path.expanduser(value)
    if os.path.isdir(name):
        if found := in_folder(name):
            return found
        raise UserError(f"{override}: there is no picture in that folder ({', '.join(EXTENSIONS)})")
    if os.path.exists(name) or not re.search(r"[*?]", name):
        return None
    found = sorted(glob.glob(name.replace("[", "[[]"), recursive=True))
    if found := [each for each in found if each.lower().endswith(EXTENSIONS)]:
        return found
    raise UserError(f"{override}: no picture has a name like that; check the pattern")
