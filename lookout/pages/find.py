"""The search of every page: an id leads to its job, the name of a queue to it, anything else to the jobs it names."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from lookout.pages.bar import jobs_address
from lookout.pages.shell import PageRequest, page
from scheduler.errors import NotFound
from scheduler.fields import is_line
from scheduler.models import Job
from scheduler.queries.jobs import find_job
from scheduler.queries.names import queue_names
from scheduler.queries.patience import within
from scheduler.queries.runs import run_detail
from scheduler.queries.search import with_id_like

NARROW = "That takes too long to find. Give the whole id, or filter the list of jobs by queue or time of submission."


@require_safe
@page
def find(request: PageRequest) -> HttpResponse:
    """To the one job or queue that is meant, or to a list. A client id may be of one job in every queue."""
    text = request.GET.get("q", "").strip()
    with within(narrow=NARROW):
        return _way_to(text)


def _way_to(text: str) -> HttpResponse:
    job_id = _job_id(text)
    if job_id:
        return redirect("job", job_id)
    if text in queue_names():
        return redirect("queue", text)
    called = _ids_of_client_id(text)
    if len(called) == 1:
        return redirect("job", called[0])
    return redirect(jobs_address([("clientId" if called else "text", text)] if text else []))


def _job_id(text: str) -> str:
    try:
        return find_job(text).id
    except NotFound:
        pass
    try:
        return run_detail(str(UUID(text))).run.job_id
    except (ValueError, NotFound):
        return _job_id_of_part(text)


def _job_id_of_part(text: str) -> str:
    """The one job a part of an id means; empty when there is none, or more than one."""
    found = Job.objects.filter(with_id_like(text)).values_list("id", flat=True)[:2]
    return found[0] if len(found) == 1 else ""


def _ids_of_client_id(text: str) -> list[str]:
    """At most two: each queue may have one."""
    if not is_line(text):
        return []
    called = Job.objects.filter(queue__in=queue_names(), client_id=text)
    return list(called.values_list("id", flat=True)[:2])
