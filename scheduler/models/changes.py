"""The change log: what operators did, when, and why."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import models

from scheduler.models.checks import one_of
from scheduler.states import ChangeKind


class Moved(NamedTuple):
    """A job, and one thing about it before and after."""

    queue: str
    job_id: str
    before: str | int
    after: str | int


class ChangeManager(models.Manager["Change"]):
    """Entries about many jobs at once."""

    def log_jobs(
        self, kind: ChangeKind, moved: Iterable[Moved], *, actor: str, note: str, selected: str = ""
    ) -> None:
        """One entry for each queue: its jobs before and after; of a selection, only how many of each there were."""
        by_queue: dict[str, list[Moved]] = defaultdict(list)
        for each in moved:
            by_queue[each.queue].append(each)
        self.bulk_create(
            Change(
                actor=actor,
                kind=kind,
                subject=queue,
                before=_told([(each.job_id, each.before) for each in theirs], selected),
                after=_told([(each.job_id, each.after) for each in theirs], selected),
                note=note,
            )
            for queue, theirs in by_queue.items()
        )


def _told(jobs: Sequence[tuple[str, str | int]], selected: str) -> dict[str, object]:
    if not selected:
        return dict(jobs)
    return {"selected": selected, **Counter(str(value) for _, value in jobs)}


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

    objects = ChangeManager()

    class Meta:
        ordering = ["-id"]
        constraints = [one_of("change_kind_known", "kind", ChangeKind)]
        indexes = [
            # The history of one queue or policy, newest first.
            models.Index(fields=["subject", "-id"], name="change_of_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.kind} {self.subject}"
