"""Describes what a run would do at each scale (image size), with estimates of the memory."""

from styletransfer.job import Job
from styletransfer.job.memory import plan_memory
from styletransfer.system.devices import free_bytes, readable


def plan(job: Job) -> str:
    """Return a few lines of text: the scales of a run, with their steps, tiles and memory."""
    free, peak = free_bytes(job.device), 0.0
    lines = [f"{job.device}, {job.precision}, {job.mode.name}, {job.optimizer.name}"]
    for scale in job.scales:
        (tile, needed), (height, width) = plan_memory(job, scale, free), scale.size
        peak = max(peak, needed)
        how = "whole" if tile is None else f"tiles of {tile} px"
        lines.append(f"{width} x {height}: {scale.steps} steps, {how}, about {readable(needed)}")
    left = "" if free == float("inf") else f" of {readable(free)} free"
    return "\n".join([*lines, f"in all about {readable(peak)}{left}"])
