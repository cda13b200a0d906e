"""Keeping decoders of pictures quiet: what is worth saying of a file, we say in one line."""

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image

_LOGS = [logging.getLogger(name) for name in ("tifffile", "imagecodecs")]
# All that is held back here belongs to the process, not to a thread.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def quiet_decoders() -> Iterator[None]:
    """Hold back remarks about odd metadata and damage, and Pillow's size limit: ours says more.

    libtiff writes its own past Python, to the process's standard error, which leads nowhere
    meanwhile.
    """
    with _ONE_AT_A_TIME, _no_standard_error(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        before = [log.disabled for log in _LOGS]
        for log in _LOGS:
            log.disabled = True
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit
            for log, was_disabled in zip(_LOGS, before, strict=True):
                log.disabled = was_disabled


@contextmanager
def _no_standard_error() -> Iterator[None]:
    try:
        before = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
