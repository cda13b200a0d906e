"""Checks a sweep (several jobs of one command line) before it begins; counts jobs at the end."""

from collections.abc import Collection, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Sweep, ValueType
from hydra.core.utils import JobReturn

from styletransfer.cli.errors import tell
from styletransfer.errors import UserError

# A folder's name that contains one of NUMBERED is different for each job of a sweep. One that
# contains NAMED holds all keys and values of a job, so it is different if no value is listed twice.
NUMBERED, NAMED = ("${hydra.job.num}", "${hydra.job.id}"), "${hydra.job.override_dirname}"


def check_sweep(words: Sequence[str], dividing: Collection[str] = ()) -> None:
    """Raise UserError if two jobs would write the same file or folder; raise Hydra's own errors.

    `words` are the KEY=VALUE words of the command line in Hydra's grammar. Jobs that differ only in
    keys in `dividing`, such as `part` of `apply`, may share one output, because each job writes its
    own part of it. (UserError also for a function such as range(0,4) in a list of several values,
    because Hydra cannot read it there.)
    """
    parsed = OverridesParser.create().parse_overrides(list(words))
    typed = dict(word.lstrip("+").partition("=")[::2] for word in words)
    swept = {one.get_key_element().lstrip("+"): one for one in parsed if one.is_sweep_override()}
    for key, one in swept.items():
        values = getattr(one.value(), "list", None) or ()
        if any(isinstance(value, Sweep) for value in values):
            raise UserError(f"{key}={typed[key]}: choice(...) or range(...) stands alone")
    output = typed.get("output", "null")
    others = [key for key in swept if key not in dividing]
    if output != "null" and others and (others != ["output"] or _repeats(swept["output"])):
        raise UserError(
            f"several jobs of a sweep would write {output}; leave output= out, and each has its own"
        )
    whole = typed.get("hydra.sweep", "")
    folder = typed.get("hydra.sweep.subdir", whole if "subdir" in whole else NUMBERED[0])
    if not any(name in folder for name in NUMBERED) and any(
        not (f"${{{key}}}" in folder or NAMED in folder) or _repeats(one)
        for key, one in swept.items()
    ):
        raise UserError(f"hydra.sweep.subdir={folder} gives several jobs one folder; leave it out")


def _repeats(override: Override) -> bool:
    """Tell whether a sweep's list of values holds a value twice."""
    if override.value_type == ValueType.GLOB_CHOICE_SWEEP:
        return False
    values = [*override.sweep_string_iterator()]
    return len(values) > len({*values})


def report(jobs: Sequence[JobReturn]) -> None:
    """Print the number of jobs, if all succeeded.

    If some failed, print a line for each of them, and raise UserError, which says how many jobs
    succeeded. (UserError also if there is no job.)
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
