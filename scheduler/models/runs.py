"""Runs: each try of a job on one node, its error and its output."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from scheduler.client_events import Place, pod_name_of
from scheduler.models.bulk import json_text, turns, uuid_array
from scheduler.models.checks import one_of
from scheduler.models.fleet import Executor
from scheduler.models.jobs import Job, NodePlace
from scheduler.models.queues import Queue
from scheduler.models.reading import ReadByTheThousand
from scheduler.models.ulids import uuid_of
from scheduler.states import ACTIVE_RUN_STATES, FAILED_RUN_STATES, RunState, UndecidedBecause

MAX_REASON_LENGTH = 32


_SETTLE = """
    UPDATE scheduler_run AS r
       SET settled_at = %(at)s, retryable = made.retryable, undecided_because = made.undecided_because
      FROM unnest(%(runs)s::uuid[], %(turns)s::int[]) AS each(id, turn)
      JOIN jsonb_to_recordset(%(outcomes)s::jsonb) AS made(turn int, retryable bool, undecided_because text)
     USING (turn)
     WHERE r.id = each.id
"""


_FROM_JOB = {
    "job_id": "j.id", "job_submitted_at": "j.submitted_at", "queue_id": "j.queue_id", "number": "j.run_count + 1",
    "priority_class": "j.priority_class",
    "cpu_request_millicores": "j.cpu_request_millicores", "memory_request_bytes": "j.memory_request_bytes",
    "memory_limit_bytes": "j.memory_limit_bytes", "resources": "j.resources",
    "memory_factor": "j.memory_factor", "memory_static_bytes": "j.memory_static_bytes",
}  # fmt: skip
"""What a new run takes over from its job, as SQL."""
_LEASE = """
    INSERT INTO scheduler_run ({columns})
    SELECT {values}
      FROM unnest(%(runs)s::uuid[], %(jobs)s::uuid[], %(turns)s::int[]) AS each(id, job_id, turn)
      JOIN jsonb_to_recordset(%(nodes)s::jsonb) AS place(turn int, executor text, node text, node_id text)
     USING (turn)
      JOIN scheduler_job j ON j.id = each.job_id
"""


class NewRun(NamedTuple):
    """A run about to be: of which job."""

    id: UUID
    job_id: str


class RunManager(models.Manager["Run"]):
    """Set-based SQL of the run table."""

    def lease(self, places: Mapping[NodePlace, Sequence[NewRun]], *, pool: str, at: datetime) -> None:
        """Make the runs that go to each place, in one statement. Their jobs, locked, say what they reserve."""
        given = {
            "id": "each.id", "executor_id": "place.executor", "node": "place.node", "node_id": "place.node_id",
            "pool": "%(pool)s", "leased_at": "%(at)s", **_FROM_JOB,
        }  # fmt: skip
        others = [column for column in self.model._meta.concrete_fields if column.column not in given]
        values = {**given, **{str(column.column): f"%({column.column})s" for column in others}}
        runs = [run for each in places.values() for run in each]
        with connection.cursor() as cursor:
            cursor.execute(
                _LEASE.format(columns=", ".join(values), values=", ".join(values.values())),
                {
                    "runs": uuid_array(str(run.id) for run in runs),
                    "jobs": uuid_array(str(uuid_of(run.job_id)) for run in runs),
                    "turns": turns(places.values()),
                    "nodes": json_text([{"turn": n, **place._asdict()} for n, place in enumerate(places)]),
                    "pool": pool,
                    "at": at,
                    **{str(column.column): column.get_default() for column in others},
                },
            )

    def settle(self, outcomes: Sequence[tuple[bool | None, str, Sequence[str]]], at: datetime) -> None:
        """Mark runs as settled, in one statement: whether retryable, why undecided, and the runs of which it is so."""
        made = [
            {"turn": turn, "retryable": retryable, "undecided_because": because}
            for turn, (retryable, because, _) in enumerate(outcomes)
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                _SETTLE,
                {
                    "at": at,
                    "runs": uuid_array(run for *_, runs in outcomes for run in runs),
                    "turns": turns(runs for *_, runs in outcomes),
                    "outcomes": json_text(made),
                },
            )


class Run(ReadByTheThousand):
    """One try on one node."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    job = models.ForeignKey(Job, models.CASCADE, related_name="runs", db_index=False)
    queue = models.ForeignKey(Queue, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    """Its job's, once more: an index leads from a queue to what is to be settled of it. The job's key guards it."""
    job_submitted_at = models.DateTimeField()
    """Its job's `submitted_at`, once more: jobs with such runs are listed in their order without a look at each."""
    number = models.PositiveIntegerField()
    """1 for the first try."""
    executor = models.ForeignKey(
        Executor, models.DO_NOTHING, related_name="runs", db_index=False, db_constraint=False
    )
    """Its runs outlive an executor that is taken away."""
    node = models.CharField(max_length=253)
    node_id = models.CharField(max_length=253)
    """The value of the node id label: what avoidance goes by."""
    pool = models.CharField(max_length=63)
    priority_class = models.CharField(max_length=253, blank=True)
    """Its job's when it was leased: says who may take its place."""
    state = models.CharField(max_length=16, default=RunState.LEASED)
    cpu_request_millicores = models.BigIntegerField(default=0)
    memory_request_bytes = models.BigIntegerField(null=True)
    memory_limit_bytes = models.BigIntegerField(null=True)
    resources = models.JSONField(default=dict)
    memory_factor = models.FloatField(default=0.0)
    memory_static_bytes = models.BigIntegerField(default=0)

    leased_at = models.DateTimeField()
    pending_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    recorded_at = models.DateTimeField(null=True)
    """When the end reached the database."""

    attempted = models.BooleanField(default=False)
    """Ended with any error but a lease return that says it was not attempted."""
    exit_code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    category = models.CharField(max_length=63, blank=True)
    subcategory = models.CharField(max_length=63, blank=True)
    memory_peak_bytes = models.BigIntegerField(null=True)
    killed_by = models.CharField(max_length=16, blank=True)
    enforced_by = models.CharField(max_length=16, blank=True)
    core_seconds = models.FloatField(default=0.0)
    """Reserved cores times seconds of running."""
    fingerprint = models.CharField(max_length=32, blank=True)
    """Of the error with numbers, ids and addresses folded."""

    settled_at = models.DateTimeField(null=True)
    retryable = models.BooleanField(null=True)
    """Whether the job went on after this run's failure; null until settled, and for runs that did not fail."""
    undecided_because = models.CharField(max_length=24, blank=True)
    settle_tries = models.PositiveSmallIntegerField(default=0)
    settle_error = models.TextField(blank=True)
    """Set when settling failed three times: the run is set aside until an operator looks."""

    objects = RunManager()

    class Meta:
        constraints = [
            one_of("run_state_known", "state", RunState),
            one_of("run_undecided_known", "undecided_because", ["", *UndecidedBecause]),
            UniqueConstraint(name="run_number_once_per_job", fields=["job", "number"]),
            UniqueConstraint(
                name="run_one_active_per_job",
                fields=["job"],
                condition=Q(state__in=[str(state) for state in ACTIVE_RUN_STATES]),
            ),
            CheckConstraint(
                name="run_ended_when_not_active",
                condition=Q(ended_at__isnull=True) ^ ~Q(state__in=["leased", "pending", "running"]),
            ),
        ]
        indexes = [
            # The queue of work of settling: runs that ended and nobody has settled, of each queue the oldest first.
            models.Index(
                F("queue"), F("ended_at"), F("job"), name="run_unsettled_of_queue",
                condition=Q(ended_at__isnull=False, settled_at__isnull=True, settle_error=""),
            ),
            # What an executor has to do, and what a node has to carry.
            models.Index(
                F("executor"), F("state"), name="run_active_of_executor",
                condition=Q(state__in=["leased", "pending", "running"]),
            ),
            # What follows serves questions of `tack bench history`, by their ids.
            # Lists, newest first: of all runs (R1, R6), of a queue (R2).
            models.Index(F("leased_at").desc(), F("id").desc(), name="run_newest"),
            models.Index(F("queue"), F("leased_at").desc(), F("id").desc(), name="run_by_queue"),
            # Failed runs of a category, newest first (R4), and jobs that failed of it at any time, in their order (T7):
            # the index alone tells which.
            models.Index(
                fields=["category", "-leased_at", "-id"], include=["state", "job", "job_submitted_at"],
                name="run_by_category", condition=~Q(category=""),
            ),
            # Runs of a node, newest first (R3), and jobs that ran on it at any time, in their order (X2): the index alone
            # tells which.
            models.Index(
                fields=["node", "-leased_at", "-id"], include=["state", "job", "job_submitted_at"],
                name="run_by_node",
            ),
            # Runs that failed in the same way, and their jobs, likewise (R10, T6).
            models.Index(
                fields=["fingerprint", "-leased_at", "-id"], include=["state", "job", "job_submitted_at"],
                name="run_by_kind", condition=~Q(fingerprint=""),
            ),
            # The failures of a queue in the order they happened (X5).
            models.Index(
                F("queue"), F("ended_at"), F("id"), name="run_failed_of_queue",
                condition=Q(state__in=[str(state) for state in FAILED_RUN_STATES]),
            ),
            # The failures of all queues likewise (R9).
            models.Index(
                F("ended_at"), F("id"), name="run_failed",
                condition=Q(state__in=[str(state) for state in FAILED_RUN_STATES]),
            ),
            # What is not in the roll-ups yet, and failures of some time (T1–T4, X3, X6): ended runs in the order they were
            # recorded. Those of other states are passed over in the index.
            models.Index(F("recorded_at"), F("state"), name="run_by_end", condition=Q(recorded_at__isnull=False)),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"run {self.number} of {self.job_id}"

    def core_seconds_until(self, at: datetime) -> float:
        """Reserved cores times seconds of running, had it ended then; 0 for a run that never started."""
        ran = (at - self.started_at).total_seconds() if self.started_at is not None else 0.0
        return self.cpu_request_millicores / 1000 * ran

    def place(self) -> Place:
        """Where the run is, in the words of client events. Needs `job` to be loaded."""
        return Place(
            run_id=str(self.id),
            executor=self.executor_id,
            node=self.node,
            pool=self.pool,
            pod_name=pod_name_of(self.job_id),
            namespace=self.job.namespace,
        )


class RunError(ReadByTheThousand):
    """Why a run ended badly, in the words of whoever saw it."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="error")
    message = models.TextField(blank=True)
    """With the category's hint."""
    reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True)
    """OOM, Evicted, DeadlineExceeded or AppError."""
    containers = models.JSONField(default=list)
    """`[{"name", "exitCode", "reason", "message", "init"}]`"""
    warnings = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"error of {self.run_id}"


class RunOutput(models.Model):
    """The head and the tail of what a run wrote, at most 64 KiB each."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="output")
    head = models.BinaryField(default=bytes)
    tail = models.BinaryField(default=bytes)
    dropped_bytes = models.BigIntegerField(default=0)
    """Bytes between head and tail that were not kept."""

    def __str__(self) -> str:
        return f"output of {self.run_id}"
