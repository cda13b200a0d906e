"""Settings become a job: a style transfer that is ready to run.

`choices.py` says what the settings mean, `sources.py` reads the pictures that they name, and
`prepare.py` brings these pictures to the sizes of the job and builds the job. Whatever can be wrong
with the settings is told here, before the first step; no step is made here.
"""

from styletransfer.job.job import Job
from styletransfer.job.scales import Scale

__all__ = ["Job", "Scale"]
