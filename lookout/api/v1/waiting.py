"""Why jobs of a queue wait."""

import dataclasses

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.bodies import query_of
from lookout.api.endpoint import Endpoint, NoQuery, answer
from lookout.api.schema import described
from scheduler.queries.waiting import waiting_in


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ReasonView:
    """Why some jobs wait."""

    reason: str
    """A sentence, from the last round."""
    jobs: int
    job_id: str
    """One of them: the one that goes first."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WaitingView:
    """Why the jobs of a queue wait that go first in it."""

    reasons: tuple[ReasonView, ...]
    """The most frequent first."""
    looked_at: int
    """So many jobs were looked at."""
    more: bool
    """There are others behind them."""


class QueueWaiting(Endpoint):
    """The reasons of one queue."""

    @described("queueWaiting", tag="Queues", answer=WaitingView, refusals=(404,))
    def get(self, request: Request, name: str) -> Response:
        """Why jobs of the queue wait, each reason with how many there are: a thousand jobs are looked at."""
        query_of(request, NoQuery)
        found = waiting_in(name)
        return answer(
            WaitingView(
                reasons=tuple(
                    ReasonView(reason=each.sentence, jobs=each.jobs, job_id=each.job_id)
                    for each in found.reasons
                ),
                looked_at=found.looked_at,
                more=found.is_cut,
            )
        )
