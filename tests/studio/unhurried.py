"""Imported in a studio's painter: runs of many steps wait between steps, and styles are small.

So long runs last for minutes, as tests of a page need, and leave the processors to the page; and a
style that is new to a sketch takes a quarter of the time. The painter begins without a warm-up.
"""

import time
from dataclasses import replace

from styletransfer.networks.apply.painter import Paintings
from styletransfer.studio import runner
from styletransfer.studio.guide import Guide

MANY = 1000
step, look_at = Guide.step, Paintings.look_at


def wait(guide, run, iterate):
    """Report a step, as `Guide.step` does, then wait for a quarter of a second."""
    step(guide, run, iterate)
    if run.config.steps > MANY:
        time.sleep(0.25)


def look_at_half(paintings, file):
    """Read a style image as `Paintings.look_at` does, at half its size."""
    config = paintings.config
    paintings.config = replace(config, style_size=config.style_size // 2)
    try:
        return look_at(paintings, file)
    finally:
        paintings.config = config


Guide.step, Paintings.look_at = wait, look_at_half
runner._warm_up = lambda: 1e-6
