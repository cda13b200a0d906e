"""Settings become a job: a style transfer that is ready to run.

`choices.py` has what the settings mean, `sources.py` the pictures that they name, `load.py` these
pictures at the sizes of the job, and `prepare.py` puts them together.
"""

from styletransfer.job.job import Job
from styletransfer.job.scales import Scale

__all__ = ["Job", "Scale"]
