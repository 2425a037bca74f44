"""Every address that answers with many rows of the history, and how it is asked."""

import json
from collections.abc import Callable
from typing import Any

from tests.api.caller import Caller

type Ask = Callable[[Caller], Any]
"""Asks as somebody, reads the answer to its end, and returns it."""


def _get(path: str) -> Ask:
    def ask(who: Caller) -> Any:
        response = who.raw("GET", f"v1/{path}")
        if response.streaming:
            list(response)
        return response

    return ask


def _lookout(path: str, body: dict[str, Any]) -> Ask:
    def ask(who: Caller) -> Any:
        shown = {"Authorization": f"Bearer {who.token}"}
        sent = json.dumps(body)
        return who.client.post(
            f"/lookout/api/v1/{path}", sent, content_type="application/json", headers=shown
        )

    return ask


LEADING = "annotation.example.com/a=x_1&jobSet*=a"
"""What has looks of its own at the tables before the list is read."""
_ANNOTATED = {"field": "example.com/a", "match": "exact", "value": "x_1", "isAnnotation": True}
_IN_SETS = {"field": "jobSet", "match": "contains", "value": "a"}

DOORS: dict[str, Ask] = {
    **{
        path: _get(path)
        for path in (
            f"jobs?count=true&{LEADING}", "jobs?sort=owner&annotation.1?=yes", "runs?count=true", "decisions?count=true",
            f"jobs/export?{LEADING}", "jobs/export?sort=owner&annotation.1?=yes", "runs/export", "decisions/export?format=csv",
            "jobs/groups?by=state", f"jobs/groups?by=namespace&{LEADING}", "failures/heatmap",
            "failures/heatmap?across=hour&queue=nightly", "failures/groups", "failures/days", "failures/days?queue=nightly",
            "stats/retries", "stats/retries?queue=nightly",
        )
    },
    "Lookout's jobs": _lookout("jobs", {"filters": [_ANNOTATED, _IN_SETS]}),
    "Lookout's jobs in an order": _lookout(
        "jobs", {"filters": [_ANNOTATED], "order": {"field": "queue", "direction": "ASC"}}
    ),
    "Lookout's groups": _lookout("jobGroups", {"filters": [_ANNOTATED], "groupedField": {"field": "queue"}}),
}  # fmt: skip
"""By address."""
