"""Rows: the scheduler's tables, their constraints, and the set-based SQL that belongs to each."""

from scheduler.models.annotations import JobAnnotation
from scheduler.models.bells import Bell
from scheduler.models.changes import Change
from scheduler.models.counters import Counter
from scheduler.models.decisions import Decision
from scheduler.models.events import Event
from scheduler.models.fleet import Executor, Node
from scheduler.models.history import (
    FailureDay,
    FailureHour,
    JobTotal,
    NodeDayTotal,
    NodeFailureDay,
    PoolFailureDay,
    QueueFailureDay,
    RetryDay,
    RetryHour,
)
from scheduler.models.history_mark import HistoryMark
from scheduler.models.jobs import Job, JobSet, JobSpec
from scheduler.models.policies import RetryPolicy, RetryPolicyVersion
from scheduler.models.pools import Pool, PoolRound
from scheduler.models.queues import Queue, QueuePolicy
from scheduler.models.runs import Run, RunError, RunOutput
from scheduler.models.vigil import Vigil

__all__ = [
    "Bell",
    "Change",
    "Counter",
    "Decision",
    "Event",
    "Executor",
    "FailureDay",
    "FailureHour",
    "HistoryMark",
    "Job",
    "JobAnnotation",
    "JobSet",
    "JobSpec",
    "JobTotal",
    "Node",
    "NodeDayTotal",
    "NodeFailureDay",
    "Pool",
    "PoolFailureDay",
    "PoolRound",
    "Queue",
    "QueueFailureDay",
    "QueuePolicy",
    "RetryDay",
    "RetryHour",
    "RetryPolicy",
    "RetryPolicyVersion",
    "Run",
    "RunError",
    "RunOutput",
    "Vigil",
]
