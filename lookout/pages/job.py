"""One job: why it ended, what was tried, and what it wrote."""

import json
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from lookout.pages.bar import jobs_address
from lookout.pages.course import Leg, Turn, course_of
from lookout.pages.life import asks_of
from lookout.pages.shell import PageRequest, page, show
from lookout.pages.side_by_side import side_by_side
from lookout.pages.spec import spec_yaml
from lookout.pages.told import told
from lookout.pages.why import why
from lookout.printouts import Printout, readable
from lookout.templatetags.figures import cores
from policies.quantity import rounded_bytes
from scheduler.models import Event, Job, RunOutput
from scheduler.models.clock import database_now
from scheduler.queries.jobs import JobDetail, decision_of, job_detail
from scheduler.queries.runs import run_output
from scheduler.states import EventKind

LINES_SHOWN = 24
MOST_LINES = 10_000


@require_safe
@page
def job(request: PageRequest, job_id: str) -> HttpResponse:
    """One job, live until it has ended."""
    detail = job_detail(job_id)
    now = database_now()
    runs = detail.runs
    context = {
        **_head(detail),
        **_output(request, detail),
        "now": now,
        "why": why(
            detail.job, runs, waiting_because=detail.waiting_because, end_message=_end_message(detail)
        ),
        "course": _course(detail, now),
        "rows": side_by_side(runs),
        "events": _events(detail),
        "events_cut": detail.more_events,
        "spec_lines": job_file(detail).splitlines(),
        "asks": asks_of(detail.job, request.actor),
    }
    return show(request, "job/job.html", context, place="jobs", part="live")


@require_safe
@page
def job_spec(request: PageRequest, job_id: str) -> HttpResponse:
    """The job as a job file that can be submitted again."""
    detail = job_detail(job_id)
    return _file(job_file(detail).encode(), f"{detail.job.id}.yaml", "application/yaml")


@require_safe
@page
def output_of_run(request: PageRequest, run_id: UUID) -> HttpResponse:
    """What was kept of a run's output, byte for byte."""
    output = run_output(str(run_id))
    kept = bytes(output.head) + bytes(output.tail) if output else b""
    return _file(kept, f"run-{run_id}.log", "application/octet-stream")


def job_file(detail: JobDetail) -> str:
    """The job as it was submitted, as a job file. Its client id is told, but not given: with it the file would make no job."""
    job = detail.job
    item = {
        "priority": _submitted_priority(detail),
        "namespace": job.namespace,
        "annotations": job.annotations,
        "labels": job.labels,
        "podSpec": detail.pod_spec,
    }
    given = {name: value for name, value in item.items() if value or name == "priority"}
    text = spec_yaml({"queue": job.queue_id, "jobSetId": job.job_set.name, "jobs": [given]})
    if not job.client_id:
        return text
    return f"# clientId {json.dumps(job.client_id)} is left out: with it this would be the same job again.\n{text}"


def _submitted_priority(detail: JobDetail) -> int:
    """It may be another one by now."""
    first = next((event for event in detail.events if event.kind == EventKind.SUBMITTED), None)
    if first is None and detail.more_events:
        first = Event.objects.filter(job=detail.job, kind=EventKind.SUBMITTED).first()
    told = first.payload.get("job", {}).get("priority") if first else None
    return told if isinstance(told, int) else detail.job.priority


def _file(content: bytes, name: str, content_type: str) -> HttpResponse:
    return HttpResponse(
        content,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _end_message(detail: JobDetail) -> str:
    """What clients were told when the job failed; empty when it did not."""
    failed = next((event for event in detail.events if event.kind == EventKind.FAILED), None)
    return str(failed.payload.get("reason", "")) if failed else ""


def _head(detail: JobDetail) -> dict[str, Any]:
    job, runs = detail.job, detail.runs
    decision = next((found for run in reversed(runs) if (found := decision_of(run))), None)
    memory = job.memory_limit_bytes or job.memory_request_bytes
    return {
        "job": job,
        "runs": runs,
        "run_states": [run.state for run in runs],
        "took": (job.ended_at - job.submitted_at) if job.ended_at else None,
        "queue_address": jobs_address([("queue", job.queue_id)]),
        "job_set_address": jobs_address([("queue", job.queue_id), ("jobSet", job.job_set.name)]),
        "similar": _similar(detail),
        "policies": detail.retry_policies,
        "last_decision": decision,
        "policy_spent": decision is not None and 0 < decision.policy_limit <= decision.policy_used_after,
        "global_spent": decision is not None and 0 < decision.global_limit <= decision.global_used_after,
        "memory_before": rounded_bytes(job.submitted_memory_bytes) if job.submitted_memory_bytes else "",
        "memory_now": rounded_bytes(memory) if memory else "",
        "requests": _requests(job),
        "executor": runs[-1].executor_id if runs else "",
        "commands": [
            f"./tack get job {job.id}",
            f"./tack watch {_word(job.queue_id)} {_word(job.job_set.name)}",
        ],
    }


def _word(text: str) -> str:
    return shlex.quote(text)


def _similar(detail: JobDetail) -> dict[str, str] | None:
    failure = detail.row.last_failure
    if failure is None or not failure.category:
        return None
    pairs = [("queue", detail.job.queue_id), ("category.any", failure.category)]
    return {
        "address": jobs_address(pairs),
        "words": f"Jobs of {detail.job.queue_id} that failed of {failure.category}",
    }


def _requests(job: Job) -> str:
    parts = [f"{cores(job.cpu_request_millicores)} CPU"]
    return ", ".join([*parts, *(f"{amount} {name}" for name, amount in job.resources.items())])


def _course(detail: JobDetail, now: datetime) -> list[Leg | Turn]:
    return course_of(detail.job, detail.runs, detail.sentences, now=now)


def _output(request: PageRequest, detail: JobDetail) -> dict[str, Any]:
    """The output of the run the address names, or else of the newest that has any."""
    kept = [run for run in detail.runs if str(run.id) in detail.runs_with_output]
    asked = request.GET.get("output", "")
    run = next((run for run in kept if str(run.number) == asked), None) or next(reversed(kept), None)
    output = run_output(str(run.id)) if run else None
    whole = request.GET.get("lines") == "all"
    return {
        "output_run": run or (detail.runs[-1] if detail.runs else None),
        "output_links": [
            {"number": each.number, "current": each == run, "address": f"?output={each.number}"}
            for each in kept
        ],
        "printout": _printout(output, whole=whole) if output else None,
        "whole": whole,
        "numbers_with_output": [each.number for each in kept],
        "open": request.GET.getlist("open"),
    }


def _printout(output: RunOutput, *, whole: bool) -> Printout:
    last = MOST_LINES if whole else LINES_SHOWN
    return readable(bytes(output.head), bytes(output.tail), output.dropped_bytes, last=last)


def _events(detail: JobDetail) -> Sequence[dict[str, Any]]:
    numbers = {run.id: run.number for run in detail.runs}
    return [
        {
            "number": event.number,
            "kind": event.kind,
            "created": event.created,
            "run_number": numbers.get(event.run_id) if event.run_id else None,
            "what": told(event, owner=detail.job.owner),
        }
        for event in detail.events
    ]
