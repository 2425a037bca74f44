"""Give jobs another priority."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import body_of
from lookout.api.endpoint import Endpoint, answer
from lookout.api.schema import described
from lookout.api.shapes import SIGNED_32, AtMost
from lookout.api.v1.choosing import ChosenJobs
from lookout.batches import until_done
from scheduler import tasks
from scheduler.actors import Actor
from scheduler.reprioritising import Reprioritized, reprioritize_jobs, reprioritize_selected


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ReprioritizeBody(ChosenJobs):
    """Which jobs, and their new priority."""

    priority: Annotated[int, AtMost(SIGNED_32)]
    """From 0; the smaller goes first."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ReprioritizedView:
    """Ids of jobs, by what came of it."""

    reprioritized: tuple[str, ...]
    unchanged: tuple[str, ...]
    """Had this priority before, had ended, or were being cancelled. Of a selection: 10,000 at most of those that had it."""
    more: bool
    """There were too many for one request. Send it again to go on."""


class Reprioritisation(Endpoint):
    """The place of jobs in their line."""

    @described(
        "reprioritizeJobs",
        tag="Jobs",
        body=ReprioritizeBody,
        sent={"queue": "nightly", "jobSetId": "report/2026-11-29", "states": ["queued"], "priority": 5},
        answer=ReprioritizedView,
        example=ReprioritizedView(reprioritized=("01m8kv97rd4xeyzbnnzd9ygah7",), unchanged=(), more=False),
        refusals=(400, 404),
    )
    def post(self, request: Request) -> Response:
        """Give jobs another priority. Those that run keep running. Twice changes nothing."""
        done = _reprioritize(body_of(request, ReprioritizeBody), actor_of(request))
        if any(each.reprioritized for each in done):
            tasks.ring_rounds()
        moved = {job: None for each in done for job in each.reprioritized}
        return answer(
            ReprioritizedView(
                reprioritized=tuple(moved),
                unchanged=tuple(job for each in done for job in each.unchanged if job not in moved),
                more=done[-1].more,
            )
        )


def _reprioritize(body: ReprioritizeBody, actor: Actor) -> Sequence[Reprioritized]:
    selection, priority = body.selection, body.priority
    if selection is None:
        return [reprioritize_jobs(job_ids=body.job_ids or (), priority=priority, actor=actor)]
    return until_done(lambda: reprioritize_selected(selection=selection, priority=priority, actor=actor))
