"""Settings become a job: a style transfer that is ready to run.

`choices.py` says what the settings mean, `sources.py` reads the pictures that they name, and
`prepare.py` resizes these pictures to the sizes of the job and builds the job. Errors in the
settings are raised here, before the first step of the run.
"""

from styletransfer.job.job import Job
from styletransfer.job.scales import Scale

__all__ = ["Job", "Scale"]
