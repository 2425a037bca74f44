"""The change log: what operators did, when, and why."""

from django.db import models

from scheduler.models.checks import one_of
from scheduler.states import ChangeKind


class Change(models.Model):
    """One thing a person did. Written by the verb, which knows who and why."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.TextField()
    kind = models.CharField(max_length=32)
    subject = models.TextField()
    """The name of the queue, policy or job it was done to."""
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [one_of("change_kind_known", "kind", ChangeKind)]
        indexes = [
            # The history of one queue or policy, newest first.
            models.Index(fields=["subject", "-id"], name="change_of_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.kind} {self.subject}"
