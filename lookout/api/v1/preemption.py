"""Have the runs of jobs give way."""

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
from scheduler.actors import Actor
from scheduler.configured import configuration
from scheduler.preempting import Preempting, preempt_jobs, preempt_selected


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PreemptBody(ChosenJobs):
    """Which jobs, and why."""

    reason: Annotated[str, AtMost(2_000)] = ""
    """Left out: that it was asked for."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PreemptingView:
    """Ids of jobs, by what came of it."""

    preempting: tuple[str, ...]
    """Have a run, which was asked to give way."""
    unchanged: tuple[str, ...]
    """Have no run, or one that was asked before."""
    more: bool
    """There were too many for one request. Send it again to go on."""


class Preemption(Endpoint):
    """Runs that give way."""

    @described(
        "preemptJobs",
        tag="Jobs",
        body=PreemptBody,
        sent={"executor": "local", "node": "local-1", "reason": "room for the month's end"},
        answer=PreemptingView,
        example=PreemptingView(preempting=("01m8kv97rd4xeyzbnnzd9ygah7",), unchanged=(), more=False),
        refusals=(400, 404, 409),
    )
    def post(self, request: Request) -> Response:
        """Have the runs of jobs give way: they get their grace, and the jobs end as preempted. Twice changes nothing.

        Only jobs of a preemptible priority class: others are refused where they are named, and left alone where
        jobs are chosen by where they are.
        """
        done = _preempt(body_of(request, PreemptBody), actor_of(request))
        return answer(
            PreemptingView(
                preempting=tuple(job for each in done for job in each.preempting),
                unchanged=tuple(job for each in done for job in each.unchanged),
                more=done[-1].more,
            )
        )


def _preempt(body: PreemptBody, actor: Actor) -> Sequence[Preempting]:
    selection, reason, config = body.selection, body.reason, configuration()
    if selection is None:
        return [preempt_jobs(job_ids=body.job_ids or (), reason=reason, actor=actor, config=config)]
    return until_done(
        lambda: preempt_selected(selection=selection, reason=reason, actor=actor, config=config)
    )
