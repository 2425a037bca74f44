"""Cancel jobs."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import body_of
from lookout.api.endpoint import Endpoint, answer
from lookout.api.schema import described
from lookout.api.shapes import AtMost
from lookout.api.v1.choosing import ChosenJobs
from lookout.batches import until_done
from scheduler import tasks
from scheduler.actors import Actor
from scheduler.cancelling import Cancelled, cancel_jobs, cancel_selected


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CancelBody(ChosenJobs):
    """Which jobs, and why."""

    reason: Annotated[str, AtMost(2_000)] = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CancelledView:
    """Ids of jobs, by what the cancellation did."""

    cancelled: tuple[str, ...]
    """Had not been placed, and ended at once."""
    cancelling: tuple[str, ...]
    """Have a run, which was asked to end."""
    unchanged: tuple[str, ...]
    """Had ended before, or were being cancelled."""
    more: bool
    """There were too many for one request. Send it again to go on."""


class Cancellation(Endpoint):
    """The end of jobs."""

    @described(
        "cancelJobs",
        tag="Jobs",
        body=CancelBody,
        sent={"filter": "queue=nightly&category.any=oom", "reason": "the input is too large"},
        answer=CancelledView,
        example=CancelledView(
            cancelled=("01m8kv97rd4xeyzbnnzd9ygah7",),
            cancelling=("01m8kvdzprhtc3z2gaas88han6",),
            unchanged=(),
            more=False,
        ),
        refusals=(400, 404),
    )
    def post(self, request: Request) -> Response:
        """Cancel jobs: those that wait end at once, those that run are asked to. Twice changes nothing."""
        done = _cancel(body_of(request, CancelBody), actor_of(request))
        if any(each.cancelled for each in done):
            tasks.ring_rounds()
        return answer(
            CancelledView(
                cancelled=tuple(job for each in done for job in each.cancelled),
                cancelling=tuple(job for each in done for job in each.cancelling),
                unchanged=tuple(job for each in done for job in each.unchanged),
                more=done[-1].more,
            )
        )


def _cancel(body: CancelBody, actor: Actor) -> Sequence[Cancelled]:
    selection = body.selection
    if selection is None:
        return [cancel_jobs(job_ids=body.job_ids or (), reason=body.reason, actor=actor)]
    return until_done(lambda: cancel_selected(selection=selection, reason=body.reason, actor=actor))
