"""Jobs: submit, list, get."""

import dataclasses
from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from lookout.access import actor_of
from lookout.api.bodies import MOST_JOB_FILE_BYTES, document_of, query_of
from lookout.api.endpoint import Endpoint, NoQuery, answer
from lookout.api.schema import described
from lookout.api.shapes import AtMost, Named
from lookout.api.v1.job_views import (
    JobDetailView,
    JobFileDocument,
    JobList,
    SubmittedList,
    SubmittedView,
    job_detail_view,
    job_view,
)
from lookout.filters import job_filter
from scheduler import tasks
from scheduler.queries.jobs import job_detail, job_page
from scheduler.queries.pages import MAX_LIMIT
from scheduler.submission import check_honoured, check_job_file, submit_jobs


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobsQuery:
    """Which jobs. A name given several times means any of them; different names are joined by "and"."""

    queue: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    """queued, leased, pending, running, cancelling, succeeded, failed, cancelled or rejected."""
    id: tuple[str, ...] = ()
    job_set: tuple[str, ...] = ()
    category_any: Annotated[tuple[str, ...], Named("category.any")] = ()
    """It failed at some time of one of these: oom, or oom/limit with the subcategory."""
    category_last: Annotated[tuple[str, ...], Named("category.last")] = ()
    """The last failure is one of these."""
    text: str = ""
    """The name of the job set or the owner contains it, or it is the job's id."""
    limit: Annotated[int, AtMost(MAX_LIMIT)] = 100
    cursor: str = ""
    """`next` of the page before."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SubmitQuery:
    """How to submit."""

    dry_run: bool = False
    """Only check the file, for fields that no executor heard of acts on as well."""


class Jobs(Endpoint):
    """All of them."""

    @described("listJobs", tag="Jobs", query=JobsQuery, answer=JobList, refusals=(400,))
    def get(self, request: Request) -> Response:
        """Jobs, newest first, a page at a time. The filters are those of the jobs page's address."""
        query = query_of(request, JobsQuery)
        wanted = job_filter(request.GET, besides=("limit", "cursor"))
        page = job_page(wanted, limit=query.limit, cursor=query.cursor)
        return answer(JobList(jobs=tuple(job_view(row) for row in page.rows), next=page.next or None))

    @described(
        "submitJobs",
        tag="Jobs",
        query=SubmitQuery,
        body=JobFileDocument,
        yaml=True,
        answer=SubmittedList,
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
            file = check_job_file(document, actor=actor)
            if query.dry_run:
                check_honoured(file)
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

    @described("getJob", tag="Jobs", answer=JobDetailView, refusals=(404,))
    def get(self, request: Request, job_id: str) -> Response:
        """One job with its pod spec as submitted and all its runs."""
        query_of(request, NoQuery)
        return answer(job_detail_view(job_detail(job_id)))
