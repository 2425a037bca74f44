"""Queues, and the retry policies attached to them in order."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from scheduler.actors import Actor, QueueVerb


class Queue(models.Model):
    """Where jobs wait, and whose they are."""

    name = models.CharField(max_length=63, primary_key=True)
    priority_factor = models.FloatField(default=1.0)
    owners = ArrayField(models.TextField(), default=list, blank=True)
    group_owners = ArrayField(models.TextField(), default=list, blank=True)
    permissions = models.JSONField(default=list, blank=True)
    """`[{"subjects": [{"kind": "User|Group", "name": …}], "verbs": ["submit", …]}]`"""
    labels = models.JSONField(default=dict, blank=True)
    cordoned = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            CheckConstraint(name="queue_priority_factor_at_least_1", condition=Q(priority_factor__gte=1.0)),
            CheckConstraint(name="queue_name_not_empty", condition=~Q(name="")),
        ]

    def __str__(self) -> str:
        return self.name

    def allows(self, actor: Actor, verb: QueueVerb) -> bool:
        """The actor owns the queue, or one of its permissions gives the verb."""
        if actor.belongs_to(users=self.owners, groups=self.group_owners):
            return True
        return any(
            verb in entry["verbs"]
            and actor.belongs_to(
                users=[s["name"] for s in entry["subjects"] if s["kind"] == "User"],
                groups=[s["name"] for s in entry["subjects"] if s["kind"] == "Group"],
            )
            for entry in self.permissions
        )


class QueuePolicy(models.Model):
    """A retry policy attached to a queue. The first one decides."""

    queue = models.ForeignKey(Queue, models.CASCADE, related_name="attachments")
    policy = models.ForeignKey("scheduler.RetryPolicy", models.PROTECT, related_name="attachments")
    ordinal = models.PositiveIntegerField()

    class Meta:
        ordering = ["queue_id", "ordinal"]
        constraints = [
            UniqueConstraint(name="queue_policy_once", fields=["queue", "policy"]),
            UniqueConstraint(name="queue_policy_order", fields=["queue", "ordinal"]),
        ]

    def __str__(self) -> str:
        return f"{self.queue_id}: {self.policy_id}"
