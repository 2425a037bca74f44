"""The search of every page: a job id or run id leads to its job, anything else to the jobs it names."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from lookout.pages.bar import jobs_address
from lookout.pages.shell import PageRequest, page
from scheduler.errors import NotFound
from scheduler.queries.jobs import find_job
from scheduler.queries.runs import run_detail


@require_safe
@page
def find(request: PageRequest) -> HttpResponse:
    """To the one job that is meant, or to a list."""
    text = request.GET.get("q", "").strip()
    job_id = _job_id(text)
    if job_id:
        return redirect("job", job_id)
    return redirect(jobs_address([("text", text)] if text else []))


def _job_id(text: str) -> str:
    try:
        return find_job(text).id
    except NotFound:
        pass
    try:
        return run_detail(str(UUID(text))).run.job_id
    except (ValueError, NotFound):
        return ""
