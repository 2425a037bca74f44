"""Jobs by a piece of text: a name, or a part of an id."""

from uuid import UUID

from django.db.models import F, Q, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import EndsWith

from scheduler.models.ulids import uuid_of

_WHOLE, _TIME_PART = 26, 10
"""Characters of a job id, and of the time it begins with."""


def with_text(text: str) -> Q:
    """Jobs with this in the name of the job set or the owner, of the queue of this name, or with an id like it."""
    return Q(job_set__name__icontains=text) | Q(owner__icontains=text) | Q(queue=text) | with_id_like(text)


def with_id_like(text: str) -> Q:
    """Jobs whose id begins with these characters, 10 or more, or ends with these 16: its own part, without the time."""
    found = Q(id__in=())
    if len(text) >= _TIME_PART and (first := _id_or_none(text.ljust(_WHOLE, "0"))):
        found |= Q(id__gte=first, id__lte=_id_or_none(text.ljust(_WHOLE, "z")))
    if len(text) == _WHOLE - _TIME_PART and (own := _id_or_none(text.rjust(_WHOLE, "0"))):
        found |= Q(EndsWith(Cast(F("id"), TextField()), str(own)[14:]))
    return found


def _id_or_none(text: str) -> UUID | None:
    try:
        return uuid_of(text)
    except ValueError:
        return None
