"""Decisions: what the retry engine said about each failed run. One per run, kept by the primary key."""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from policies.decision import Verdict
from scheduler.models.bulk import json_text, turns, uuid_array
from scheduler.models.checks import one_of
from scheduler.models.jobs import Job
from scheduler.models.reading import ReadByTheThousand
from scheduler.models.runs import Run

_SHARED = {
    "policy_name": "text", "policy_version": "int", "rule_index": "int", "verdict": "text", "reason": "text",
    "policy_used_before": "int", "policy_used_after": "int", "policy_limit": "bigint",
    "global_used_before": "int", "global_used_after": "int", "global_limit": "bigint",
    "memory_from_bytes": "bigint", "memory_to_bytes": "bigint", "avoids_nodes": "text[]",
}  # fmt: skip
"""What decisions about equal cases have in common, with its types."""
_RECORD = f"""
    INSERT INTO scheduler_decision (run_id, job_id, decided_at, {", ".join(_SHARED)})
    SELECT each.run_id, each.job_id, %(at)s, {", ".join(f"made.{name}" for name in _SHARED)}
      FROM unnest(%(runs)s::uuid[], %(jobs)s::uuid[], %(turns)s::int[]) AS each(run_id, job_id, turn)
      JOIN jsonb_to_recordset(%(decisions)s::jsonb)
           AS made(turn int, {", ".join(f"{name} {kind}" for name, kind in _SHARED.items())}) USING (turn)
"""  # noqa: S608 - the names stand above


class DecisionManager(models.Manager["Decision"]):
    """Set-based SQL of the decisions."""

    def record(self, decisions: Sequence[tuple["Decision", Sequence[tuple[str, str]]]], at: datetime) -> None:
        """Write each decision once for every run and job it was made about, in one statement."""
        if not decisions:
            return
        with connection.cursor() as cursor:
            cursor.execute(
                _RECORD,
                {
                    "at": at,
                    "runs": uuid_array(run for _, about in decisions for run, _ in about),
                    "jobs": uuid_array(job for _, about in decisions for _, job in about),
                    "turns": turns(about for _, about in decisions),
                    "decisions": json_text(
                        [
                            {"turn": turn, **{name: getattr(made, name) for name in _SHARED}}
                            for turn, (made, _) in enumerate(decisions)
                        ]
                    ),
                },
            )


class Decision(ReadByTheThousand):
    """A verdict, why, and what it changed."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="decision")
    job = models.ForeignKey(Job, models.CASCADE, related_name="decisions")
    policy_name = models.CharField(max_length=63)
    policy_version = models.PositiveIntegerField()
    rule_index = models.PositiveIntegerField(null=True)
    """From 0; null when no rule matched."""
    verdict = models.CharField(max_length=24)
    reason = models.TextField()
    policy_used_before = models.PositiveIntegerField()
    policy_used_after = models.PositiveIntegerField()
    policy_limit = models.PositiveBigIntegerField()
    global_used_before = models.PositiveIntegerField()
    global_used_after = models.PositiveIntegerField()
    global_limit = models.PositiveBigIntegerField()
    memory_from_bytes = models.BigIntegerField(null=True)
    """The limit the run had, or else its request; null when the decision asks for no more memory."""
    memory_to_bytes = models.BigIntegerField(null=True)
    """What the next run gets, or would have got where the verdict is that it fits no node."""
    avoids_nodes = ArrayField(models.TextField(), default=list)
    """Every node the job avoids from now on, when this decision added one; else empty."""
    decided_at = models.DateTimeField()

    objects = DecisionManager()

    class Meta:
        constraints = [one_of("decision_verdict_known", "verdict", Verdict)]
        indexes = [
            # The decisions of a policy, newest first (R8).
            models.Index(fields=["policy_name", "-decided_at"], name="decision_of_policy"),
            # The newest decisions (R7), and those that are not in the roll-ups yet (T2).
            models.Index(fields=["-decided_at", "-run"], name="decision_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} on {self.run_id}"
