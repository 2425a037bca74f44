"""Who closed queues and why, as the change log tells it."""

from collections.abc import Collection
from typing import NamedTuple

from scheduler.models import Change
from scheduler.states import ChangeKind


class Cordon(NamedTuple):
    """Who closed a queue, and why where they said so."""

    by: str = ""
    reason: str = ""


OPEN = Cordon()
_CLOSING = (ChangeKind.CORDON_QUEUE, ChangeKind.UPDATE_QUEUE, ChangeKind.CREATE_QUEUE)


def cordons_of(queues: Collection[str]) -> dict[str, Cordon]:
    """Cordoned queue → the last change that closed it; those whose log does not tell are absent."""
    closing = Change.objects.filter(kind__in=_CLOSING, subject__in=queues, after__cordoned=True)
    newest = closing.exclude(before__cordoned=True).order_by("subject", "-id").distinct("subject")
    return {queue: Cordon(by, why) for queue, by, why in newest.values_list("subject", "actor", "note")}
