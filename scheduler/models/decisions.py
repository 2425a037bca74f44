"""Decisions: what the retry engine said about each failed run. One per run, kept by the primary key."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from policies.decision import Verdict
from scheduler.models.checks import one_of
from scheduler.models.jobs import Job
from scheduler.models.runs import Run


class Decision(models.Model):
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

    class Meta:
        constraints = [one_of("decision_verdict_known", "verdict", Verdict)]
        indexes = [
            # The decisions of a policy, newest first.
            models.Index(fields=["policy_name", "-decided_at"], name="decision_of_policy"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} on {self.run_id}"
