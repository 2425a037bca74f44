"""How many there are: exact up to a bound, and estimated by the database beyond it."""

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

BOUND = 10_000
"""So many are counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Total:
    """A number of rows."""

    count: int
    is_exact: bool
    """Else it is the database's estimate, and more than BOUND."""


def total_of(rows: QuerySet[Any], *, bound: int = BOUND) -> Total:
    """How many rows a query has, in one query, or two where they are more than `bound`."""
    counted = rows.order_by().values("pk")[: bound + 1].count()
    if counted <= bound:
        return Total(count=counted, is_exact=True)
    plan = json.loads(rows.order_by().values("pk").explain(format="json"))
    return Total(count=max(int(plan[0]["Plan"]["Plan Rows"]), counted), is_exact=False)
