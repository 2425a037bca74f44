"""Jobs: submit, list, get."""

import dataclasses

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import MOST_JOB_FILE_BYTES, document_of, query_of
from lookout.api.endpoint import IF_NONE_MATCH, Endpoint, NoQuery, answer, answer_tagged
from lookout.api.lists import HistoryRate, ListQuery, OneRate, answer_list, asked_of
from lookout.api.schema import described
from lookout.api.v1 import examples, other_examples
from lookout.api.v1.job_views import (
    JobDetailView,
    JobFileDocument,
    JobList,
    JobView,
    SubmittedList,
    SubmittedView,
    job_detail_view,
    job_view,
)
from scheduler import tasks
from scheduler.filters import JOBS, job_filter_of
from scheduler.filters.orders import NEWEST_JOBS
from scheduler.queries.counting import total_of
from scheduler.queries.jobs import job_detail, job_page
from scheduler.queries.listings import NARROW, find_jobs
from scheduler.queries.patience import within
from scheduler.queries.submittable import check_job_file
from scheduler.submission import submit_jobs


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SubmitQuery:
    """How to submit."""

    dry_run: bool = False
    """Only check the file, for fields that no executor heard of acts on as well."""


class Jobs(Endpoint):
    """All of them."""

    throttle_classes = (HistoryRate,)

    @described(
        "listJobs",
        tag="Jobs",
        query=ListQuery,
        filters=JOBS,
        answer=JobList,
        example=examples.JOBS,
        refusals=(400, 429),
    )
    def get(self, request: Request) -> Response:
        """The jobs of a filter, newest first unless told otherwise, a page at a time.

        The filters are those of the jobs page's address.
        """
        asked = asked_of(request, JOBS, read=job_filter_of, otherwise=lambda _: NEWEST_JOBS, view=JobView)
        with within(narrow=NARROW[JOBS.things]):
            page = job_page(asked.wanted, order=asked.order, limit=asked.limit, cursor=asked.cursor)
            return answer_list(
                "jobs",
                [job_view(row) for row in page.rows],
                asked=asked,
                rest=page.next,
                total=lambda: total_of(find_jobs(asked.wanted)),
            )

    @described(
        "submitJobs",
        tag="Jobs",
        query=SubmitQuery,
        body=JobFileDocument,
        yaml=True,
        answer=SubmittedList,
        example=other_examples.SUBMITTED,
        sent=other_examples.JOB_FILE,
        refusals=(400, 404, 413),
    )
    def post(self, request: Request) -> Response:
        """Submit the jobs of a job file: all of them, or none where one has a problem.

        A client id names one job of a queue for good: the same again is answered with the first job.
        """
        query = query_of(request, SubmitQuery)
        body = document_of(request, limit=MOST_JOB_FILE_BYTES)
        document = body.to_object()
        actor = actor_of(request)
        with body.told_with_lines():
            file = check_job_file(document, actor=actor, honoured=query.dry_run)
        if query.dry_run:
            checked = (
                SubmittedView(job_id="", client_id=item.client_id, created=False) for item in file.items
            )
            return answer(SubmittedList(jobs=tuple(checked)))
        submitted = submit_jobs(queue=file.queue, job_set=file.job_set, items=file.items, actor=actor)
        if any(job.created for job in submitted):
            tasks.ring_rounds()
        views = (SubmittedView(job_id=j.job_id, client_id=j.client_id, created=j.created) for j in submitted)
        return answer(SubmittedList(jobs=tuple(views)))


class JobEndpoint(Endpoint):
    """One job."""

    throttle_classes = (OneRate,)

    @described(
        "getJob",
        tag="Jobs",
        answer=JobDetailView,
        example=examples.JOB_DETAIL,
        headers=IF_NONE_MATCH,
        refusals=(404, 429),
    )
    def get(self, request: Request, job_id: str) -> Response:
        """One job with its pod spec as submitted and all its runs. Its ETag changes with anything of it."""
        query_of(request, NoQuery)
        return answer_tagged(request, job_detail_view(job_detail(job_id)))
