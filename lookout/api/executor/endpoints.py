"""Heartbeat, work and reports of one executor."""

import dataclasses
import time
from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import WrongScope, executor_of
from lookout.api.bodies import MOST_BODY_BYTES, MOST_REPORT_BYTES, body_of
from lookout.api.closing import is_closing, let_go
from lookout.api.endpoint import AgentEndpoint, Nothing, answer
from lookout.api.executor.bell import WORK_BELL
from lookout.api.executor.checks import LONGEST_NAME, check_heartbeat, check_reports
from lookout.api.executor.seats import SEATS
from lookout.api.schema import described
from lookout.api.shapes import SIGNED_32, AtMost
from scheduler import tasks
from scheduler.configured import configuration
from scheduler.executors.protocol import Heartbeat, Report, ReportOutcome, Work, WorkRequest
from scheduler.heartbeats import record_heartbeat
from scheduler.queries.work import work_for
from scheduler.reporting import record_reports

LONGEST_WAIT_SECONDS = 20
LOOK_SECONDS = 5.0
"""A waiting agent's work is looked for this often even when no bell rings."""
MOST_TEXT = 256 * 1024
MOST_RUNS = 20_000

_BOUNDS = {
    "executor": 63,
    "pool": 63,
    "name": LONGEST_NAME,
    "node": LONGEST_NAME,
    "pod_name": LONGEST_NAME,
    "run_id": LONGEST_NAME,
    "category": 63,
    "subcategory": 63,
    "reason": LONGEST_NAME,
    "message": MOST_TEXT,
    "hint": MOST_TEXT,
    "exit_code": SIGNED_32,
    "signal": 255,
    "wait_seconds": LONGEST_WAIT_SECONDS,
    "runs": MOST_RUNS,
    "containers": 100,
    "warnings": 100,
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Reports:
    """What an agent tells of its runs, oldest first."""

    executor: str
    reports: Annotated[tuple[Report, ...], AtMost(1_000)]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """What became of each report, in their order."""

    outcomes: tuple[ReportOutcome, ...]


class Heartbeats(AgentEndpoint):
    """Signs of life."""

    @described("heartbeat", tag="Executor", body=Heartbeat, answer=Nothing, refusals=(400,))
    def post(self, request: Request) -> Response:
        """Say that the executor is there and what it has.

        Its leases live from the time this is received. Nodes that are not named any more are gone.
        """
        heartbeat = body_of(request, Heartbeat, limit=4 * MOST_BODY_BYTES, bounds=_BOUNDS)
        _own(request, heartbeat.executor)
        check_heartbeat(heartbeat)
        if record_heartbeat(heartbeat):
            tasks.ring_rounds()
        return answer()


class WorkEndpoint(AgentEndpoint):
    """What there is to do."""

    @described("work", tag="Executor", body=WorkRequest, answer=Work, refusals=(400,))
    def post(self, request: Request) -> Response:
        """Ask for leases, for runs to stop, and for runs to forget.

        Answers at once when there is any, else when there is or after `waitSeconds`. Asking again hands out
        the same: a lost answer loses nothing. Stops of runs that are `stopping` are not told again.
        """
        asked = body_of(request, WorkRequest, limit=8 * MOST_BODY_BYTES, bounds=_BOUNDS)
        _own(request, asked.executor)
        return answer(_wait_for_work(asked))


class ReportsEndpoint(AgentEndpoint):
    """What became of runs."""

    @described("report", tag="Executor", body=Reports, answer=Outcomes, refusals=(400, 413))
    def post(self, request: Request) -> Response:
        """Report what became of runs. The same report again changes nothing.

        A run that is unknown or another executor's is refused, and does not hold up the others.
        """
        told = body_of(request, Reports, limit=MOST_REPORT_BYTES, bounds=_BOUNDS, mend=True)
        _own(request, told.executor)
        check_reports(told.reports)
        recorded = record_reports(
            executor=told.executor,
            reports=told.reports,
            requeue_preempted=configuration().requeue_preempted,
        )
        if recorded.any_to_settle:
            tasks.ring_settle()
        if recorded.any_room:
            tasks.ring_rounds()
        return answer(Outcomes(outcomes=tuple(recorded.outcomes)))


def _own(request: Request, executor: str) -> None:
    mine = executor_of(request)
    if executor != mine:
        raise WrongScope(f"This token is executor '{mine}''s and cannot speak for '{executor}'.")


def _wait_for_work(asked: WorkRequest) -> Work:
    work = work_for(executor=asked.executor, known_runs=asked.runs, stopping=asked.stopping)
    if not work.is_empty or not asked.wait_seconds:
        return work
    with SEATS.taken() as seated:
        if not seated:
            return dataclasses.replace(work, ask_again_seconds=SEATS.ask_again_seconds(asked.executor))
        return _wait_in_a_seat(asked)


def _wait_in_a_seat(asked: WorkRequest) -> Work:
    end = time.monotonic() + asked.wait_seconds
    while True:
        ticket = WORK_BELL.ticket(asked.executor)
        work = work_for(executor=asked.executor, known_runs=asked.runs, stopping=asked.stopping)
        left = end - time.monotonic()
        if not work.is_empty or left <= 0 or is_closing():
            return work
        let_go()
        WORK_BELL.wait(asked.executor, ticket, min(left, LOOK_SECONDS))
