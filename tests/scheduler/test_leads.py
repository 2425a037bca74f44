"""Jobs by an annotation or by a node they ran on are found by rows that lead to them, and are those that are meant."""

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from scheduler.filters import JobFilter, Order, job_filter_of, order_of
from scheduler.filters.orders import NEWEST_JOBS
from scheduler.models import Job, JobAnnotation, JobSpec, Run
from scheduler.models.clock import database_now
from scheduler.queries import leads
from scheduler.queries.leads import jobs_found
from scheduler.queries.listings import list_jobs
from scheduler.queries.meaning import jobs_where
from scheduler.states import RunState
from tests.factories import make_executor, make_job, make_run, more_like

pytestmark = pytest.mark.django_db

LONG = "x" * 199


@pytest.fixture
def jobs() -> list[Job]:
    """Jobs with ties, with values that begin alike or hold wildcards, and with several runs on a node or none."""
    now = database_now()
    executor = make_executor("one", nodes=0)
    values = ("red", "reddish", "re_d", "re%d", "", f"{LONG}y", f"{LONG}yz")
    made = []
    for number in range(14):
        annotations = {"team/colour": values[number % 7], "n": str(number % 2)} if number % 5 else {}
        queue = ("a", "b")[number % 2]
        job = make_job(queue, annotations=annotations, submitted_at=now - timedelta(seconds=number // 3))
        for turn in range(number % 4):
            state = RunState.FAILED if turn % 2 else RunState.LEASE_RETURNED
            failed = _failed(number + turn) if state is RunState.FAILED else {}
            make_run(job, executor=executor, state=state, node=("gpu-1", "gpu-2")[number % 2], **failed)
        made.append(job)
    return made


def _failed(number: int) -> dict[str, Any]:
    category, subcategory = (("oom", "limit"), ("oom", ""), ("disk", ""), ("", ""))[number % 4]
    return {
        "category": category,
        "subcategory": subcategory,
        "exit_code": number % 2,
        "fingerprint": str(number % 3),
    }


def rows_of_jobs() -> set[tuple[str, str, object, str]]:
    """The rows there should be."""
    return {
        (key, value[:200], job.submitted_at, job.id)
        for job in Job.objects.all()
        for key, value in job.annotations.items()
    }


def rows() -> set[tuple[str, str, object, str]]:
    return set(JobAnnotation.objects.values_list("key", "value", "job_submitted_at", "job_id"))


ASKED = (
    "annotation.team/colour=red", "annotation.team/colour^=re", "annotation.team/colour=red&annotation.team/colour=re_d",
    "annotation.team/colour^=re_", "annotation.team/colour?=yes", "annotation.team/colour=", "annotation.team/colour!=red",
    f"annotation.team/colour={LONG}y", f"annotation.team/colour={LONG}yz", f"annotation.team/colour^={LONG}yz",
    "annotation.team/colour*=d", "annotation.n=1&annotation.team/colour=red", "annotation.n=1&queue=a", "annotation.n=none",
    "annotation.n=0&annotation.n=1&queue=b&owner!=bob", "node.any=gpu-1", "node.any=gpu-1&runState.any=failed&queue=a",
    "node.any=gpu-2&runState.any!=failed", "node.any=gpu-1&annotation.n=0", "node.any=gpu-1&number.any=1", "node.any!=gpu-1",
    "category.any=oom", "category.any=oom/limit", "category.any=none", "category.any=internal", "category.any!=oom&queue=a",
    "node.any=gpu-2&category.any=oom", "node.any=gpu-1&category.any!=oom", "node.any=gpu-1&category.any=internal",
    "fingerprint.any=0&queue=b", "fingerprint.last=1", "fingerprint.last=0&fingerprint.last=1&queue=a", "fingerprint.last!=0",
    "category.any=oom&exitCode.any=1", "category.any=disk&category.any=oom&owner=alice",
)  # fmt: skip
ORDERS = ("-submitted", "submitted", "-stateChanged")


@pytest.mark.parametrize("most", [0, 20_000])
def test_lists_have_what_is_meant_in_its_order(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(leads, "MOST", most)
    for asked in ASKED:
        wanted = job_filter_of(asked)
        meant = {job.id for job in Job.objects.filter(jobs_where(wanted))}
        assert {job.id for job in Job.objects.filter(jobs_found(wanted))} == meant, asked
        for text in ORDERS:
            order = order_of(text, "jobs", NEWEST_JOBS)
            in_order = [job.id for job in list_jobs(JobFilter(), order).page(limit=50)[0] if job.id in meant]
            assert joined(wanted, order) == in_order, (asked, text)


def joined(wanted: JobFilter, order: Order) -> list[str]:
    """All pages, each found once more from the job after it."""
    found: list[str] = []
    cursor = ""
    while True:
        listing = list_jobs(wanted, order)
        page, cursor = listing.page(limit=3, cursor=cursor)
        if found and page:
            above = listing.nearest_above(listing.place_of(page[0]), limit=1)
            assert [place[-1] for place in above] == found[-1:]
        found += [job.id for job in page]
        if not cursor:
            return found


def test_annotations_stand_by_themselves_as_their_jobs_have_them(jobs: list[Job]) -> None:
    assert rows() == rows_of_jobs()
    more_like(jobs[1], 3)
    jobs[1].annotations = {"team/colour": "blue", "new": "x" * 300}
    jobs[1].save()
    Job.objects.filter(id=jobs[2].id).update(submitted_at=database_now() - timedelta(days=1))
    assert ("new", "x" * 200, jobs[1].submitted_at, jobs[1].id) in rows() == rows_of_jobs()
    JobSpec.objects.filter(job__in=jobs[4:5]).delete()
    Run.objects.filter(job__in=jobs[4:5]).delete()
    Job.objects.filter(id=jobs[4].id).delete()
    assert rows() == rows_of_jobs()


def test_a_change_of_a_job_leaves_its_annotations_as_they_are(jobs: list[Job]) -> None:
    before = versions()
    Job.objects.update(priority=7)
    jobs[0].save()
    assert versions() == before


def versions() -> list[tuple[object, ...]]:
    """Which version of each row there is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT ctid::text, xmin::text, key, value, job_id FROM scheduler_jobannotation ORDER BY 1"
        )
        found: list[tuple[object, ...]] = cursor.fetchall()
        return found


def test_annotations_of_jobs_from_before_are_found(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    JobAnnotation.objects.filter(key="n").delete()
    earlier_jobs = import_module("scheduler.migrations.0022_annotations_of_earlier_jobs")
    monkeypatch.setattr(earlier_jobs, "BATCH", 5)
    with connection.schema_editor() as editor:
        earlier_jobs.fill(None, editor)
    assert rows() == rows_of_jobs()


def test_a_run_learns_from_its_job_what_nobody_says(jobs: list[Job]) -> None:
    run = jobs[1].runs.get()
    Run.objects.filter(pk=run.pk).delete()
    fields = [field.attname for field in Run._meta.concrete_fields]
    told = {name: getattr(run, name) for name in fields} | {"job_submitted_at": None}
    Run.objects.create(**told)
    assert Run.objects.get(pk=run.pk).job_submitted_at == jobs[1].submitted_at


def test_runs_from_before_learn_when_their_jobs_were_submitted(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("scheduler.migrations.0020_runs_know_their_jobs_submission")
    monkeypatch.setattr(module, "BATCH", 5)
    with connection.cursor() as cursor, connection.schema_editor() as editor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE scheduler_run ALTER COLUMN job_submitted_at DROP NOT NULL")
        Run.objects.update(job_submitted_at=None)
        module.fill(None, editor)
    wrong = Run.objects.exclude(job_submitted_at=F("job__submitted_at"))
    assert Run.objects.count() > 5
    assert not wrong.exists()
