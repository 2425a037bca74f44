"""Jobs, their job sets and their specs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from scheduler.models.bulk import json_text, turns, uuid_array
from scheduler.models.checks import one_of
from scheduler.models.queues import Queue
from scheduler.models.reading import ReadByTheThousand
from scheduler.models.ulids import UlidField, new_ulid, uuid_of
from scheduler.states import JobState


class JobSet(ReadByTheThousand):
    """A named set of jobs of one queue; the stream of its events is numbered here."""

    queue = models.ForeignKey(Queue, models.PROTECT, related_name="job_sets")
    name = models.CharField(max_length=1024)
    last_event = models.BigIntegerField(default=0)
    """The number of its newest event; only `Event.objects.append` moves it."""

    class Meta:
        constraints = [UniqueConstraint(name="job_set_once_per_queue", fields=["queue", "name"])]

    def __str__(self) -> str:
        return f"{self.queue_id}/{self.name}"


# Each queue is looked at by the index of its own unsettled runs, and no further than its share: what a claim costs
# does not depend on how many wait. There are candidates for several workers, who pass over what the others hold.
_CLAIM = """
    WITH busy AS MATERIALIZED (
        SELECT name, greatest(%(candidates)s / count(*) OVER (), %(least)s) AS share
          FROM scheduler_queue q
         WHERE EXISTS (SELECT FROM scheduler_run r
                        WHERE r.queue_id = q.name
                          AND r.ended_at IS NOT NULL AND r.settled_at IS NULL AND r.settle_error = '')
    ), chosen AS MATERIALIZED (
        SELECT mine.*
          FROM busy CROSS JOIN LATERAL (
               SELECT r.queue_id, r.job_id, r.ended_at, row_number() OVER (ORDER BY r.ended_at, r.job_id) AS turn
                 FROM scheduler_run r
                WHERE r.queue_id = busy.name
                  AND r.ended_at IS NOT NULL AND r.settled_at IS NULL AND r.settle_error = ''
             ORDER BY r.ended_at, r.job_id LIMIT busy.share) AS mine
      ORDER BY turn, ended_at, job_id LIMIT %(candidates)s
    ), weather AS MATERIALIZED (
        SELECT min(runs) < %(least)s AND max(runs) >= %(least)s AS storms_elsewhere
          FROM (SELECT count(*) AS runs FROM chosen GROUP BY queue_id) AS each_queue
    ), held AS MATERIALIZED (
        SELECT j.id FROM chosen JOIN scheduler_job j ON j.id = chosen.job_id
      ORDER BY chosen.turn, chosen.ended_at, chosen.job_id
         LIMIT (SELECT CASE WHEN storms_elsewhere THEN least(%(limit)s, %(beside)s) ELSE %(limit)s END FROM weather)
           FOR NO KEY UPDATE OF j SKIP LOCKED
    )
    SELECT (SELECT count(*) FROM chosen), coalesce(storms_elsewhere, false),
           ARRAY(SELECT id::text FROM held ORDER BY id)
      FROM weather
"""
_WORKERS = 4
"""So many find work side by side in a storm; more would wait for the batches of the others."""
_LEAST_SHARE = 50
"""A queue with fewer unsettled runs is not in a storm."""
_BESIDE = 250
"""Jobs claimed at most while it storms in some queues and not in others: those others wait for what is in their batch."""
_CARRY_OUT = """
    UPDATE scheduler_job AS j
       SET state = made.state, state_changed_at = %(at)s,
           ended_at = CASE WHEN NOT made.requeued THEN %(at)s::timestamptz END,
           version = j.version + 1, queued_version = j.queued_version + made.requeued::int,
           avoided_nodes = made.avoided_nodes, memory_request_bytes = made.memory_request_bytes,
           memory_limit_bytes = made.memory_limit_bytes, memory_factor = made.memory_factor,
           memory_static_bytes = made.memory_static_bytes
      FROM unnest(%(jobs)s::uuid[], %(turns)s::int[]) AS each(id, turn)
      JOIN jsonb_to_recordset(%(outcomes)s::jsonb) AS made(
               turn int, state text, requeued bool, avoided_nodes text[], memory_request_bytes bigint,
               memory_limit_bytes bigint, memory_factor float8, memory_static_bytes bigint) USING (turn)
     WHERE j.id = each.id
"""


# In the order of the locks, so that no two submissions can wait for each other.
_HOLD_GANGS = """
    SELECT pg_advisory_xact_lock(key)
      FROM (SELECT DISTINCT hashtextextended(%s || E'\\n' || gang, 0) AS key FROM unnest(%s::text[]) AS gang
          ORDER BY key) AS keys
"""
_LEASE = """
    UPDATE scheduler_job AS j
       SET state = 'leased', state_changed_at = %(at)s, version = version + 1, run_count = run_count + 1,
           last_executor = place.executor, last_node = place.node, last_pool = %(pool)s
      FROM unnest(%(jobs)s::uuid[], %(turns)s::int[]) AS each(id, turn)
      JOIN jsonb_to_recordset(%(nodes)s::jsonb) AS place(turn int, executor text, node text) USING (turn)
     WHERE j.id = each.id
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """Jobs locked for settling."""

    jobs: Sequence[str]
    more: bool
    """There is reason to look again at once. Where others hold all that is left, they will."""
    storms_elsewhere: bool
    """There are jobs of quiet queues among these while it storms in others."""


class NodePlace(NamedTuple):
    """Where runs go."""

    executor: str
    node: str
    node_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What becomes of jobs whose runs were settled alike."""

    state: JobState
    requeued: bool
    avoided_nodes: Sequence[str]
    memory_request_bytes: int | None
    memory_limit_bytes: int | None
    memory_factor: float
    memory_static_bytes: int


class JobManager(models.Manager["Job"]):
    """Set-based SQL of the job table."""

    def claim_unsettled(self, limit: int) -> Claim:
        """Lock up to `limit` jobs with runs that await settling; what another transaction holds is skipped.

        Every queue gets an equal share, the oldest ends first, so that a storm in one starves no other; and where it
        storms in some and not in others, no more are claimed than are settled in a moment. Nobody is waited for, so
        the order of the locks does not matter. What is locked is to be read by another statement, whose snapshot is
        younger than the locks.
        """
        with connection.cursor() as cursor:
            cursor.execute(
                _CLAIM,
                {"limit": limit, "candidates": limit * _WORKERS, "least": _LEAST_SHARE, "beside": _BESIDE},
            )
            chosen, storms_elsewhere, held = cursor.fetchone()
        return Claim(jobs=held, more=0 < len(held) < chosen, storms_elsewhere=storms_elsewhere)

    def carry_out(self, outcomes: Sequence[tuple[Outcome, Sequence[str]]], at: datetime) -> None:
        """Bring locked jobs to what settling made of them, each to its outcome, in one statement."""
        with connection.cursor() as cursor:
            cursor.execute(
                _CARRY_OUT,
                {
                    "at": at,
                    "jobs": uuid_array(job for _, jobs in outcomes for job in jobs),
                    "turns": turns(jobs for _, jobs in outcomes),
                    "outcomes": json_text(
                        [{"turn": turn, **asdict(made)} for turn, (made, _) in enumerate(outcomes)]
                    ),
                },
            )

    def hold_gangs(self, queue: str, gang_ids: Iterable[str]) -> None:
        """Until this transaction ends nobody else submits members of these gangs."""
        with connection.cursor() as cursor:
            cursor.execute(_HOLD_GANGS, [queue, sorted(set(gang_ids))])

    def lease(self, places: Mapping[NodePlace, Sequence[str]], *, pool: str, at: datetime) -> None:
        """Bring the locked jobs that go to each place to their next run, in one statement."""
        with connection.cursor() as cursor:
            cursor.execute(
                _LEASE,
                {
                    "jobs": uuid_array(str(uuid_of(job)) for jobs in places.values() for job in jobs),
                    "turns": turns(places.values()),
                    "nodes": json_text([{"turn": n, **place._asdict()} for n, place in enumerate(places)]),
                    "pool": pool,
                    "at": at,
                },
            )


class Job(ReadByTheThousand):
    """What somebody wants run. Keeps its id through every retry."""

    id = UlidField(primary_key=True, default=new_ulid, editable=False)
    queue = models.ForeignKey(Queue, models.PROTECT, related_name="jobs", db_index=False)
    job_set = models.ForeignKey(JobSet, models.PROTECT, related_name="jobs", db_index=False)
    owner = models.TextField()
    namespace = models.CharField(max_length=253, default="default")
    priority = models.PositiveIntegerField(default=0)
    """Smaller goes first, as in the model."""
    priority_class = models.CharField(max_length=253, blank=True)
    """Goes before the priority; what it means stands in the configuration. Empty for jobs from before there were any."""
    gang_id = models.CharField(max_length=253, blank=True)
    """Jobs of one queue with the same one start together; empty for a job of its own."""
    gang_cardinality = models.PositiveIntegerField(default=1)
    gang_uniformity_label = models.CharField(max_length=317, blank=True)
    """All members go to nodes with the same value of this label; empty for any nodes."""
    client_id = models.CharField(max_length=100, null=True)
    annotations = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)

    state = models.CharField(max_length=16, default=JobState.QUEUED)
    state_changed_at = models.DateTimeField()
    submitted_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    recorded_at = models.DateTimeField(null=True)
    """When the end reached the database. Set by the database itself, with `ended_at`: no verb can forget it."""
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_user = models.TextField(blank=True)
    cancel_reason = models.TextField(blank=True)
    preempt_requested_at = models.DateTimeField(null=True)
    preempt_user = models.TextField(blank=True)
    preempt_reason = models.TextField(blank=True)
    rejected_because = models.TextField(blank=True)
    run_count = models.PositiveIntegerField(default=0)
    queued_version = models.PositiveIntegerField(default=1)
    """Goes up by one per requeue."""
    version = models.PositiveIntegerField(default=1)
    """Goes up whenever anything a round looks at changes; a plan made at another version is dropped."""

    # What is known of its runs once more, to be listed and grouped by: an index leads from it to jobs in their order.
    last_executor = models.CharField(max_length=253, null=True)
    last_node = models.CharField(max_length=253, null=True)
    last_pool = models.CharField(max_length=63, null=True)
    """Where its last run is or was, written with the lease; null before the first."""
    last_category = models.CharField(max_length=63, null=True)
    last_subcategory = models.CharField(max_length=63, null=True)
    """What it failed of last, perhaps without a category; null when it never failed. Set by the database itself as
    soon as a failure is there, the job's own end included: no verb can forget it."""

    # What the scheduler reserves: the aggregate of the pod spec, grown by mutations.
    cpu_request_millicores = models.BigIntegerField(default=0)
    memory_request_bytes = models.BigIntegerField(null=True)
    memory_limit_bytes = models.BigIntegerField(null=True)
    submitted_memory_bytes = models.BigIntegerField(null=True)
    """The reservation as submitted, before any growth: the limit, or else the request."""
    resources = models.JSONField(default=dict)
    """Requests of other resources by name, in whole units."""
    memory_factor = models.FloatField(default=0.0)
    """Cumulative factor since submission; 0 is none."""
    memory_static_bytes = models.BigIntegerField(default=0)
    """Cumulative static growth since submission; 0 is none. At most one of the two is set."""
    node_selector = models.JSONField(default=dict)
    affinity = models.JSONField(default=list)
    """Required node affinity: `[[{"key", "operator", "values"}]]`, any of the terms with all of its expressions."""
    tolerations = models.JSONField(default=list)
    """`[{"key", "operator", "value", "effect"}]`, as in the pod spec."""
    avoided_nodes = ArrayField(models.TextField(), default=list)
    """Values of the node id label no later run may be placed on."""
    needed_fields = ArrayField(models.TextField(), default=list)
    """Paths of its pod spec's fields that not every executor acts on, with `[]` for any element of a list."""
    grace_period_seconds = models.PositiveIntegerField(default=30)

    objects = JobManager()

    class Meta:
        constraints = [
            one_of("job_state_known", "state", JobState),
            UniqueConstraint(
                name="job_client_id_once_per_queue",
                fields=["queue", "client_id"],
                condition=Q(client_id__isnull=False),
            ),
            CheckConstraint(
                name="job_grows_one_way", condition=Q(memory_factor=0.0) | Q(memory_static_bytes=0)
            ),
            CheckConstraint(
                name="job_ended_when_terminal",
                condition=Q(ended_at__isnull=True)
                ^ Q(state__in=["succeeded", "failed", "cancelled", "preempted", "rejected"]),
            ),
        ]
        indexes = [
            # A round: queued jobs of each queue in the order they go.
            models.Index(
                F("queue"), F("priority_class"), F("priority"), F("submitted_at"), F("id"),
                name="job_queued_order", condition=Q(state="queued"),
            ),
            # The members of a gang.
            models.Index(F("queue"), F("gang_id"), name="job_of_gang", condition=~Q(gang_id="")),
            # What follows serves questions of `tack bench history`, by their ids.
            # Lists by state, newest first (L6, L15), and the first and last of each when all are grouped (G3).
            models.Index(F("state"), F("submitted_at").desc(), F("id").desc(), name="job_by_state"),
            # Lists of a queue, newest first (L2, L11, L12, L17, X4), its first and last (G1), and its groups (G2, G4), of
            # which the index alone tells all that is asked.
            models.Index(
                fields=["queue", "-submitted_at", "-id"], name="job_by_queue",
                include=["namespace", "job_set", "state", "state_changed_at", "ended_at"],
            ),
            # A queue's jobs of a state (L3, L16, G7, G8), and the first and last of each when all are grouped by both.
            models.Index(
                F("queue"), F("state"), F("submitted_at").desc(), F("id").desc(), name="job_by_queue_and_state"
            ),
            # Lists of job sets, newest first (L4, L5).
            models.Index(F("job_set"), F("submitted_at").desc(), F("id").desc(), name="job_by_job_set"),
            # Active jobs by queue and state, when all are grouped (G1, G3), and job sets that have some (L10): the index
            # alone tells.
            models.Index(
                fields=["queue", "state"], include=["state_changed_at", "job_set"], name="job_active",
                condition=Q(ended_at__isnull=True),
            ),
            # Somebody's jobs, newest first (T5).
            models.Index(F("owner"), F("submitted_at").desc(), F("id").desc(), name="job_by_owner"),
            # All jobs, newest first (L1).
            models.Index(F("submitted_at").desc(), F("id").desc(), name="job_newest"),
            # All jobs by their last change (L14).
            models.Index(F("state_changed_at").desc(), F("id").desc(), name="job_by_change"),
            # Jobs by the node or the executor of their last run, newest first (L9, L9b); groups of an executor (G6) are told
            # by the index alone.
            models.Index(
                F("last_node"), F("submitted_at").desc(), F("id").desc(), name="job_by_last_node",
                condition=Q(last_node__isnull=False),
            ),
            models.Index(
                fields=["last_executor", "-submitted_at", "-id"], name="job_by_last_executor",
                include=["last_pool", "state", "state_changed_at", "ended_at"],
                condition=Q(last_executor__isnull=False),
            ),
            # Jobs by the category they failed of last, newest first (X1).
            models.Index(
                F("last_category"), F("submitted_at").desc(), F("id").desc(), name="job_by_last_category",
                condition=Q(last_category__isnull=False),
            ),
            # Groups of jobs that failed (G5): the index alone tells all that is asked of them.
            models.Index(
                fields=["queue"], name="job_failed", condition=Q(state="failed"),
                include=[
                    "state", "last_executor", "last_node", "last_pool", "last_category", "last_subcategory",
                    "submitted_at", "state_changed_at", "ended_at",
                ],
            ),
            # What ended since totals were last counted (G1, G3), and what retention deletes first.
            models.Index(F("recorded_at"), name="job_by_end", condition=Q(recorded_at__isnull=False)),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.id


class JobSpec(models.Model):
    """What was submitted, word for word."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="spec")
    pod_spec = models.JSONField()

    def __str__(self) -> str:
        return f"spec of {self.job_id}"
