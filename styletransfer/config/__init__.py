"""Every setting: its unit, its default, and where the default comes from.

These dataclasses are the schema of the files under `configs/`: a misspelt key or a value of the
wrong type is an error before anything runs.
"""

from styletransfer.config.groups import *  # noqa: F403
from styletransfer.config.networks import *  # noqa: F403
from styletransfer.config.pictures import *  # noqa: F403
