"""Imported in a studio's painter: runs of many steps wait between steps.

So they last for minutes, as tests of a page need, and leave the processors to the page.
"""

import time

from styletransfer.studio.guide import Guide

MANY = 1000
step = Guide.step


def wait(guide, run, iterate):
    """Report a step, as `Guide.step` does, then wait for a quarter of a second."""
    step(guide, run, iterate)
    if run.config.steps > MANY:
        time.sleep(0.25)


Guide.step = wait
