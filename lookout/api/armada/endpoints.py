"""The endpoints of Armada's Lookout: every one a POST that reads."""

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.armada.groups import groups_shown
from lookout.api.armada.requests import (
    MOST_TAKEN,
    AnyBackend,
    GroupsDocument,
    JobsDocument,
    OfJob,
    OfRun,
    filter_in,
    order_in,
)
from lookout.api.armada.views import (
    debug_of_run,
    error_of_job,
    error_of_run,
    job_shown,
    spec_shown,
    termination_reason,
)
from lookout.api.bodies import body_of, query_of
from lookout.api.endpoint import Endpoint, NothingHere
from lookout.api.errors import answer_exception
from lookout.api.lists import EveryRead
from lookout.api.shapes import encode
from scheduler.filters import JOBS
from scheduler.models.clock import database_now
from scheduler.queries.jobs import JobDetail, job_detail, job_rows
from scheduler.queries.listings import NARROW, list_jobs
from scheduler.queries.patience import within
from scheduler.queries.runs import RunDetail, run_detail


class LookoutEndpoint(Endpoint):
    """One address of Lookout's."""

    schema = None  # Armada describes it
    throttle_classes = (EveryRead,)
    http_method_names = ["post"]  # noqa: RUF012  as the framework has it

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        return _answer_exception

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Before the method."""
        super().initial(request, *args, **kwargs)
        query_of(request, AnyBackend)


def _answer_exception(error: Exception, context: dict[str, Any]) -> Response:
    """`{"error": "…"}`, with the statuses of our own API."""
    answer = answer_exception(error, context)
    told = answer.data["error"]
    problems = [f"{each['path']}: {each['message']}" for each in told["problems"] if each["path"]]
    answer.data = {"error": "; ".join(problems) or told["message"]}
    return answer


class NothingOfLookout(NothingHere):
    """Every other address below /lookout/: refused in Lookout's shape."""

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        return _answer_exception


class Jobs(LookoutEndpoint):
    """A stretch of the list of jobs, with their runs."""

    def post(self, request: Request) -> Response:
        asked = body_of(request, JobsDocument)
        wanted, order = filter_in(asked), order_in(asked.order)
        with within(narrow=NARROW[JOBS.things]):
            listing = list_jobs(wanted, order)
            rows = job_rows(listing.stretch(skip=asked.skip, take=asked.take or MOST_TAKEN))
        now = database_now()
        return Response({"jobs": encode([job_shown(row, now) for row in rows])})


class JobGroups(LookoutEndpoint):
    """Jobs in groups, with what they have together."""

    def post(self, request: Request) -> Response:
        return Response({"groups": encode(groups_shown(body_of(request, GroupsDocument)))})


class JobSpec(LookoutEndpoint):
    """A job as it was submitted."""

    def post(self, request: Request) -> Response:
        return Response({"job": encode(spec_shown(_job(request)))})


class JobError(LookoutEndpoint):
    """Why a job failed or was rejected."""

    def post(self, request: Request) -> Response:
        return Response({"errorString": error_of_job(_job(request))})


class RunError(LookoutEndpoint):
    """Why a run ended badly."""

    def post(self, request: Request) -> Response:
        return Response({"errorString": error_of_run(_run(request).run)})


class RunDebugMessage(LookoutEndpoint):
    """What else is known of a run's end."""

    def post(self, request: Request) -> Response:
        return Response({"errorString": debug_of_run(_run(request).run)})


class RunTerminationReason(LookoutEndpoint):
    """Why the scheduler ended a run."""

    def post(self, request: Request) -> Response:
        return Response({"schedulerTerminationReason": termination_reason(_run(request).run)})


def _job(request: Request) -> JobDetail:
    return job_detail(body_of(request, OfJob).job_id)


def _run(request: Request) -> RunDetail:
    return run_detail(body_of(request, OfRun).run_id)
