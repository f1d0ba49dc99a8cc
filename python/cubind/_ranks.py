"""The training job that this process belongs to."""

from __future__ import annotations

import os


def job_id() -> str:
    """CUBIND_JOB, else Slurm's job, else torchrun's (but for its default, "none"), else "". All ranks of a
    job get the same: the daemon answers them from one generation of its table."""
    if job := os.environ.get("CUBIND_JOB"):
        return job
    if job := os.environ.get("SLURM_JOB_ID"):
        return f"slurm-{job}"
    run = os.environ.get("TORCHELASTIC_RUN_ID", "")
    return f"torchrun-{run}" if run not in ("", "none") else ""


def generation() -> str:
    """CUBIND_GENERATION, to which answers are locked, else ""."""
    return os.environ.get("CUBIND_GENERATION", "")


def are_several() -> bool:
    """Whether the job has several ranks, which must not diverge silently: WORLD_SIZE above 1."""
    ranks = os.environ.get("WORLD_SIZE", "")
    return ranks.isdecimal() and int(ranks) > 1
