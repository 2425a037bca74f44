"""Failed runs that a filter means, for statements that count them."""

from collections.abc import Sequence

from django.db.models import Q

from scheduler.filters import RunFilter
from scheduler.models import Run
from scheduler.queries.meaning import runs_where
from scheduler.queries.rollups import Span
from scheduler.states import FAILED_RUN_STATES

NARROW = (
    "So many failures take too long to look through. Ask for a shorter time with since and until, or for fewer of "
    "them by queue, category or node."
)


def chosen_runs(wanted: RunFilter, span: Span) -> tuple[str, Sequence[object]]:
    """SQL of the ids of the failed runs of a filter that were recorded in a span, and its parameters.

    Raises EmptyResultSet for a filter that contradicts itself.
    """
    within = Q()
    if span.since:
        within &= Q(recorded_at__gte=span.since)
    if span.until:
        within &= Q(recorded_at__lt=span.until)
    failed = Run.objects.filter(within, runs_where(wanted), state__in=FAILED_RUN_STATES).order_by()
    return failed.values("id").query.sql_with_params()
