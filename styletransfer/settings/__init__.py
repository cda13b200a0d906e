"""Every setting of every command: its unit, its default, and where the default comes from.

These dataclasses are the schemas of the files under `configs/`: a misspelt key or a value of the
wrong type is an error before anything runs.
"""

from styletransfer.settings.groups import *  # noqa: F403
from styletransfer.settings.networks import *  # noqa: F403
from styletransfer.settings.pictures import *  # noqa: F403
