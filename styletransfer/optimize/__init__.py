"""The run of a job: scales, optimisers, steps, results."""
