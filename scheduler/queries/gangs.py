"""Gangs of which members are still to end: who joins one has to agree with them."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Min

from scheduler.gangs import Membership
from scheduler.models import Job
from scheduler.states import TERMINAL_JOB_STATES


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenGang:
    """A gang as its members that have not ended say it."""

    members: int
    said: Membership
    priority_class: str


def open_gangs(queue: str, gang_ids: Collection[str]) -> dict[str, OpenGang]:
    """Gang id → those of its members that have not ended, of a queue; gangs without any are absent. One query."""
    rows = (
        Job.objects.filter(queue=queue, gang_id__in=gang_ids)
        .exclude(state__in=TERMINAL_JOB_STATES)
        .values_list("gang_id")
        .annotate(
            members=Count("id"),
            cardinality=Min("gang_cardinality"),
            label=Min("gang_uniformity_label"),
            priority_class=Min("priority_class"),
        )
    )
    return {
        gang_id: OpenGang(
            members=members,
            said=Membership(gang_id=gang_id, cardinality=cardinality, uniformity_label=label),
            priority_class=priority_class,
        )
        for gang_id, members, cardinality, label, priority_class in rows
    }
