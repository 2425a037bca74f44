"""Cancel jobs."""

import dataclasses
from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import body_of
from lookout.api.endpoint import Endpoint, answer
from lookout.api.schema import described
from lookout.api.shapes import AtMost
from scheduler import tasks
from scheduler.cancelling import cancel_jobs


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CancelBody:
    """Which jobs, and why."""

    job_ids: Annotated[tuple[str, ...], AtMost(10_000)]
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


class Cancellation(Endpoint):
    """The end of jobs."""

    @described("cancelJobs", tag="Jobs", body=CancelBody, answer=CancelledView, refusals=(400, 404))
    def post(self, request: Request) -> Response:
        """Cancel jobs: those that wait end at once, those that run are asked to. Twice changes nothing."""
        actor = actor_of(request)
        body = body_of(request, CancelBody)
        done = cancel_jobs(job_ids=body.job_ids, reason=body.reason, actor=actor)
        if done.cancelled:
            tasks.ring_rounds()
        return answer(
            CancelledView(
                cancelled=tuple(done.cancelled),
                cancelling=tuple(done.cancelling),
                unchanged=tuple(done.unchanged),
            )
        )
