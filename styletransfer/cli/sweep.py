"""Checks a sweep (several jobs of one command line) before it begins; counts jobs at the end."""

from collections.abc import Collection, Sequence

from hydra.core.override_parser.types import Override, Sweep
from hydra.core.utils import JobReturn

from styletransfer.cli.errors import tell
from styletransfer.errors import UserError


def check_sweep(
    words: Sequence[str], parsed: Sequence[Override], dividing: Collection[str] = ()
) -> None:
    """Raise UserError if two jobs would write the same file.

    `words` are the KEY=VALUE words of the command line, and `parsed` are the same words, parsed by
    Hydra. Jobs that differ only in keys in `dividing`, such as `part` of `apply`, may share one
    output, because each job writes its own part of it. (UserError also for a function such as
    range(0,4) in a list of several values, because Hydra cannot read it there.)
    """
    typed = dict(word.lstrip("+").partition("=")[::2] for word in words)
    swept = {one.get_key_element().lstrip("+"): one for one in parsed if one.is_sweep_override()}
    for key, one in swept.items():
        values = getattr(one.value(), "list", None) or ()
        if any(isinstance(value, Sweep) for value in values):
            raise UserError(f"{key}={typed[key]}: choice(...) or range(...) stands alone")
    output = typed.get("output", "null")
    others = [key for key in swept if key not in dividing]
    if output != "null" and others and others != ["output"]:
        raise UserError(
            f"several jobs of a sweep would write {output}; leave output= out, and each has its own"
        )


def report(jobs: Sequence[JobReturn]) -> None:
    """Print how many jobs succeeded, if all did.

    If some failed, print a line for each of them, and raise UserError with the numbers of both.
    (UserError also if there is no job.)
    """
    if not jobs:
        raise UserError("there is no job: a key is to be swept over no value at all")
    failed = [job for job in jobs if job.return_value]
    for job in failed:
        number = job.hydra_cfg.hydra.job.num if job.hydra_cfg else "?"
        tell(f"error: #{number} {' '.join(job.overrides or ())}: {job.return_value}")
    done = f"{len(jobs) - len(failed)} of {len(jobs)} jobs succeeded"
    if failed:
        raise UserError(done)
    print(done)
