"""The list of jobs."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.models import Job, Run, RunError
from scheduler.settling import settle_runs
from scheduler.states import JobState, RunState
from tests.factories import make_executor, make_job, make_queue, make_run
from tests.pages.conftest import HTMX
from tests.pages.seen import Seen, seen
from tests.pages.stories import CONFIG, failed_run, retried_job, succeeded_job

pytestmark = pytest.mark.django_db


def listed(page: Seen) -> list[str]:
    """Ids of the jobs in the list, in its order."""
    return [row["id"].removeprefix("job-") for row in page.attributes("tr") if "id" in row]


def some_jobs(number: int) -> list[Job]:
    """Jobs of one queue, newest first."""
    queue = make_queue()
    first = make_job(queue)
    jobs = [make_job(queue, submitted_at=first.submitted_at + timedelta(seconds=n)) for n in range(1, number)]
    return [*reversed(jobs), first]


def test_a_job_that_was_retried_tells_its_story_in_one_row(as_olga: Client) -> None:
    job = succeeded_job()
    words = seen(as_olga.get("/jobs")).words
    assert "succeeded" in words
    assert "2 runs: failed, succeeded" in words
    assert "oom" in words
    assert "retry" in words
    assert "1/2" in words
    assert "64Mi to 128Mi" in words
    assert seen(as_olga.get("/jobs")).links[f"{job.id[:10]}{job.id[10:]}"] == f"/jobs/{job.id}"


def test_a_run_that_awaits_its_verdict_is_shown_as_deciding(as_olga: Client) -> None:
    failed_run()
    assert "deciding" in seen(as_olga.get("/jobs")).words


def test_a_rejected_job_shows_and_is_found_by_the_category_of_its_end(as_olga: Client) -> None:
    rejected, _ = make_job(state=JobState.REJECTED), make_job()
    page = seen(as_olga.get("/jobs?category.last=internal"))
    assert listed(page) == [rejected.id]
    assert "internal/job-rejected" in page.words


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"a", "b", "c"}),
        ("queue=nightly", {"a", "b"}),
        ("queue=nightly&queue=other", {"a", "b", "c"}),
        ("state=failed", {"b"}),
        ("state=failed&state=queued", {"a", "b", "c"}),
        ("jobSet=night", {"a", "b"}),
        ("category.any=oom", {"b"}),
        ("category.last=oom", set()),
        ("category.last=gpu", {"b"}),
        ("text=ALI", {"a", "b", "c"}),
        ("queue=other&state=failed", set()),
    ],
)
def test_the_address_says_which_jobs(as_olga: Client, query: str, expected: set[str]) -> None:
    jobs = {
        "a": make_job("nightly", job_set="night"),
        "b": make_job("nightly", job_set="night"),
        "c": make_job("other", job_set="day"),
    }
    make_run(jobs["b"], state=RunState.FAILED, category="oom")
    make_run(jobs["b"], state=RunState.FAILED, category="gpu")
    Job.objects.filter(id=jobs["b"].id).update(state=JobState.FAILED, ended_at=jobs["b"].submitted_at)
    found = set(listed(seen(as_olga.get(f"/jobs?{query}"))))
    assert found == {jobs[name].id for name in expected}


def test_a_job_is_found_by_its_id_in_the_address(as_olga: Client) -> None:
    first, second, _ = some_jobs(3)
    assert listed(seen(as_olga.get(f"/jobs?id={first.id}&id={second.id.upper()}"))) == [first.id, second.id]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (
            "state=broken",
            "state takes queued, leased, pending, running, cancelling, succeeded, failed, cancelled",
        ),
        ("id=short", "id takes a job id of 26 letters and digits; 'short' is none."),
        ("colour=red", "There is no filter 'colour'. The filters of jobs are id, queue, jobSet, state"),
        ("cursor=nonsense", "The cursor is not one that Tack gave out for this question."),
        ("queue=a%00b", "queue holds a character that no name can hold."),
        ("text=a&text=b", "text takes at most 1 value."),
    ],
)
def test_a_filter_that_means_nothing_is_a_problem_with_its_name(
    as_olga: Client, query: str, problem: str
) -> None:
    answer = as_olga.get(f"/jobs?{query}")
    assert answer.status_code == 400
    assert problem in seen(answer).words
    assert f" {query.partition('=')[0]} Show" not in seen(answer).words
    assert seen(answer).links["Show all jobs"] == "/jobs"


def test_states_are_counted_and_each_count_leads_to_its_jobs(as_olga: Client) -> None:
    make_job("nightly")
    make_job("nightly", state=JobState.FAILED)
    make_job("other", state=JobState.FAILED)
    page = seen(as_olga.get("/jobs?queue=nightly"))
    assert page.links["set"] == "/jobs?queue=nightly&jobSet=set"
    assert page.links["All 2"] == "/jobs?queue=nightly"
    assert page.links["failed 1"] == "/jobs?queue=nightly&state=failed"
    assert page.links["queued 1"] == "/jobs?queue=nightly&state=queued"
    assert "2 jobs of nightly, 1 not ended, 1 ended failed" in page.words
    fewer = seen(as_olga.get("/jobs?queue=nightly&state=failed&runs<1")).words
    assert "2 jobs of nightly that match the filters, 1 not ended, 1 ended failed" in fewer


def test_a_filter_is_added_by_a_form_and_removed_by_a_link(as_olga: Client) -> None:
    make_queue("nightly")
    answer = as_olga.get("/jobs", {"queue": "nightly", "filter": "state", "value": "failed"})
    assert answer.headers["Location"] == "/jobs?queue=nightly&state=failed"
    page = seen(as_olga.get(answer.headers["Location"]))
    assert page.links["Remove filter State"] == "/jobs?queue=nightly"
    assert page.links["Remove filter Queue"] == "/jobs?state=failed"


def test_pages_lead_to_older_and_back_to_newer_jobs(as_olga: Client) -> None:
    jobs = [job.id for job in some_jobs(120)]
    first = seen(as_olga.get("/jobs"))
    second = seen(as_olga.get(first.links["Older"]))
    third = seen(as_olga.get(second.links["Older"]))
    assert listed(first) + listed(second) + listed(third) == jobs
    assert "Newer" not in first.links
    assert "Older" not in third.links
    assert listed(seen(as_olga.get(third.links["Newer"]))) == listed(second)
    assert second.links["Newer"] == "/jobs"


def test_new_jobs_wait_above_a_list_that_is_scrolled(as_olga: Client) -> None:
    jobs = some_jobs(3)
    at_top = seen(as_olga.get("/jobs", headers=HTMX))
    assert listed(at_top)[0] == jobs[0].id
    scrolled = seen(as_olga.get("/jobs", headers={**HTMX, "Tack-First": jobs[1].id}))
    assert listed(scrolled) == [job.id for job in jobs[1:]]
    assert scrolled.links["1 newer"] == "/jobs"


def test_the_refreshed_part_is_the_part_of_the_page(as_olga: Client) -> None:
    retried_job()
    page, part = as_olga.get("/jobs").content.decode(), as_olga.get("/jobs", headers=HTMX).content.decode()
    assert part.strip().startswith('<div id="live"')
    without_clock = [text.replace(_clock(text), "") for text in (page, part)]
    assert without_clock[1].strip() in without_clock[0]


def _clock(text: str) -> str:
    start = text.index("as of ")
    return text[start : text.index("</time>", start)]


@pytest.mark.parametrize("rows", [1, 50])
def test_the_number_of_queries_does_not_grow_with_the_list(
    as_olga: Client, rows: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    executor = make_executor()
    for job in some_jobs(rows):
        make_run(job, executor=executor, state=RunState.FAILED)
    with django_assert_num_queries(13):
        as_olga.get("/jobs")


def test_an_empty_list_says_what_is_not_there_and_one_way_on(as_olga: Client) -> None:
    assert "No job yet" in seen(as_olga.get("/jobs")).words
    make_job("nightly")
    page = seen(as_olga.get("/jobs?queue=nightly&state=failed"))
    assert "The state filter hides 1 job." in page.words
    assert page.links["Show every state"] == "/jobs?queue=nightly"
    nowhere = seen(as_olga.get("/jobs?queue=nightyl")).words
    assert "Jobs no such queue" in nowhere
    assert "There is no queue 'nightyl'. Did you mean nightly?" in nowhere


def test_ids_and_names_of_job_sets_that_are_cut_stand_there_whole(as_olga: Client) -> None:
    job = make_job(job_set="sims/2026-11-30/shot-0042")
    page = seen(as_olga.get("/jobs"))
    assert {job.id, job.job_set.name} <= {each.get("title") for each in page.attributes("a")}
    assert {job.id, job.job_set.name} <= set(page.links)


def test_names_of_others_are_shown_and_never_become_markup(as_olga: Client) -> None:
    hostile = "<script>alert(1)</script>"
    make_job("nightly", job_set=hostile, owner=hostile)
    answer = as_olga.get("/jobs", {"jobSet": hostile})
    assert hostile not in answer.content.decode()
    assert hostile in seen(answer).words


@pytest.mark.parametrize("upper", [False, True])
def test_the_search_leads_to_the_job_an_id_names(as_olga: Client, upper: bool) -> None:
    run = make_run()
    job_id = run.job_id.upper() if upper else run.job_id
    assert as_olga.get("/find", {"q": f" {job_id} "}).headers["Location"] == f"/jobs/{run.job_id}"
    assert as_olga.get("/find", {"q": str(run.id)}).headers["Location"] == f"/jobs/{run.job_id}"
    assert (
        as_olga.get("/find", {"q": "renders of today"}).headers["Location"] == "/jobs?text=renders+of+today"
    )
    assert Run.objects.count() == 1


def returned_after(run: Run) -> Job:
    """A job whose failed run was retried, and whose next lease came back once too often."""
    settle_runs(limit=10, config=CONFIG)
    job = Job.objects.get(id=run.job_id)
    last = make_run(job, state=RunState.LEASE_RETURNED, attempted=True)
    RunError.objects.create(run=last, message="The name armada-1-0 is taken.\nBy another.")
    settle_runs(limit=10, config=replace(CONFIG, max_retries=0))
    return Job.objects.get(id=run.job_id)


def test_a_retry_that_came_to_no_run_is_not_the_verdict_of_a_failed_job(as_bob: Client) -> None:
    job = returned_after(failed_run())
    assert job.state == JobState.FAILED
    words = seen(as_bob.get("/jobs?state=failed")).words
    assert "retry, no run came" in words


def test_a_job_that_ended_by_returned_leases_says_what_it_failed_of_and_why_no_run_came(
    as_bob: Client,
) -> None:
    job = returned_after(failed_run())
    words = seen(as_bob.get(f"/jobs/{job.id}")).words
    assert "Failed: out of memory at run 1, and the lease after it was returned." in words
    assert "reached - this job will no longer be retried. The last lease was returned: The name" in words


def test_failures_without_a_category_are_found_by_the_word_pages_have_for_them(as_bob: Client) -> None:
    without = make_run(state=RunState.FAILED, category="").job
    of_memory = make_run(make_job("other"), state=RunState.FAILED).job
    for name in ("category.any", "category.last"):
        found = as_bob.get(f"/jobs?{name}=none").content.decode()
        assert without.id in found
        assert of_memory.id not in found


def test_every_page_says_where_in_the_list_it_is(as_bob: Client) -> None:
    some_jobs(120)
    first = seen(as_bob.get("/jobs"))
    assert "50 of 120 jobs, newest first" in first.words
    second = seen(as_bob.get(first.links["Older"]))
    assert "51 to 100 of 120 jobs, newest first" in second.words
    assert "101 to 120 of 120 jobs, newest first" in seen(as_bob.get(second.links["Older"])).words


def test_the_search_takes_a_client_id(as_bob: Client) -> None:
    job = make_job("nightly", client_id="mine-1")
    assert as_bob.get("/find?q=mine-1").headers["Location"] == f"/jobs/{job.id}"
    make_job("weekly", client_id="mine-1")
    assert as_bob.get("/find?q=mine-1").headers["Location"] == "/jobs?clientId=mine-1"


def test_the_search_takes_the_part_of_an_id_that_is_shown_and_the_name_of_a_queue(as_bob: Client) -> None:
    job = make_job(make_queue("nightly"))
    for part in (job.id[:24], job.id[10:], job.id[10:].upper()):
        assert as_bob.get("/find", {"q": part}).headers["Location"] == f"/jobs/{job.id}"
    assert as_bob.get("/find", {"q": "nightly"}).headers["Location"] == "/queues/nightly"
    for text in (job.id[:10], job.id[10:], "nightly"):
        assert job.id in as_bob.get("/jobs", {"text": text}).content.decode()
    for text in (job.id[:9], "z" * 16, "zzzzzzzzzz", "l" * 12, job.id + "0"):
        assert as_bob.get("/find", {"q": text}).headers["Location"] == f"/jobs?text={text}"
        assert listed(seen(as_bob.get("/jobs", {"text": text}))) == []


def test_the_head_of_a_column_leads_to_its_order_and_back(as_bob: Client) -> None:
    low, high = make_job("nightly", memory_bytes=1 << 20), make_job("nightly", memory_bytes=2 << 20)
    page = seen(as_bob.get("/jobs?queue=nightly"))
    assert page.links["Submitted"] == "/jobs?queue=nightly&sort=submitted"
    by_memory = seen(as_bob.get(page.links["Memory"]))
    assert listed(by_memory) == [high.id, low.id]
    assert "2 of 2 jobs, by memory, descending" in by_memory.words
    assert by_memory.links["Remove filter Queue"] == "/jobs?sort=-memory"
    assert listed(seen(as_bob.get(by_memory.links["Memory"]))) == [low.id, high.id]


def test_pages_in_another_order_follow_each_other(as_bob: Client) -> None:
    ids = [job.id for job in some_jobs(60)]
    first = seen(as_bob.get("/jobs?sort=submitted"))
    second = seen(as_bob.get(first.links["Older"]))
    assert listed(first) + listed(second) == ids[::-1]
    assert second.links["Newer"] == "/jobs?sort=submitted"


def test_the_columns_are_chosen_in_the_address(as_bob: Client) -> None:
    make_job()
    everything = seen(as_bob.get("/jobs")).words
    assert (
        "Queue Job set Runs Last failure Verdict Retries Memory Node Exit Ran Submitted In state"
        in everything
    )
    make_job(client_id="frame-7")
    assert "frame-7" not in everything
    assert "frame-7" in seen(as_bob.get("/jobs?columns=clientId")).words
    some = seen(as_bob.get("/jobs?columns=memory,node,owner,priority,namespace"))
    assert "State Job Owner Namespace Priority Memory Node Submitted" in some.words
    assert some.links["Memory"] == "/jobs?sort=-memory&columns=memory%2Cnode%2Cowner%2Cpriority%2Cnamespace"
    assert "columns takes queue, jobSet, clientId, owner" in seen(as_bob.get("/jobs?columns=colour")).words


def test_the_form_of_the_columns_leads_to_a_short_address(as_bob: Client) -> None:
    page = seen(as_bob.get("/jobs?queue=nightly&sort=queue"))
    ticked = [each["value"] for each in page.attributes("input") if "checked" in each]
    assert "queue" not in ticked
    for chosen, address in (
        (["none", *ticked], "/jobs?queue=nightly&sort=queue"),
        (["none", "node", "memory"], "/jobs?queue=nightly&sort=queue&columns=memory%2Cnode"),
        (["none", ""], "/jobs?queue=nightly&sort=queue&columns=none"),
    ):
        answer = as_bob.get("/jobs", {"queue": "nightly", "sort": "queue", "columns": chosen})
        assert answer.headers["Location"] == address


def test_what_is_no_filter_is_told_in_the_form_that_adds_it(as_bob: Client) -> None:
    for form, problem in (
        ({"filter": "state", "match": "*=", "value": "run"}, "State is compared with: is, is not."),
        ({"filter": "memory", "match": ">", "value": "much"}, "memory takes an amount"),
        (
            {"filter": "annotation", "match": "=", "value": "example.com/team"},
            "Annotation: type KEY=VALUE. Whether there is one at all is asked with 'has a value'.",
        ),
        ({"filter": "label", "match": "^=", "value": "team="}, "Label: type KEY=VALUE."),
        ({"filter": "resource", "match": ">=", "value": "nvidia.com/mig"}, "Resource: type KEY=VALUE. "),
        ({"filter": "label", "match": "?=", "value": "team=render"}, "Label: type its KEY alone."),
        ({"filter": "label", "match": "?=", "value": ""}, "Label: type its KEY alone."),
    ):
        page = as_bob.get("/jobs", {"queue": "nightly", **form})
        assert page.status_code == 200
        assert problem in seen(page).words
    drawn = seen(as_bob.get("/filter-form?filter=submitted&queue=nightly"))
    assert [each["value"] for each in drawn.attributes("option") if each["value"][:1] in "<>=^*!?"] == [
        ">", ">=", "<", "<=",
    ]  # fmt: skip
    assert {"Job", "Any run"} <= {each["label"] for each in drawn.attributes("optgroup")}
    added = as_bob.get("/jobs", {"filter": "exitCode.any", "match": "?="})
    assert added.headers["Location"] == "/jobs?exitCode.any%3F=yes"


def test_a_wrong_filter_leaves_the_right_ones(as_bob: Client) -> None:
    page = as_bob.get("/jobs?queue=nightly&nonsense=1&retries>1")
    assert page.status_code == 400
    links = seen(page).links
    assert links["Show the jobs of the other filters"] == "/jobs?queue=nightly&retries%3E1="
    assert "Remove filter Queue" in links
    assert "Show the jobs of the other filters" not in seen(as_bob.get("/jobs?nonsense=1")).links


def test_the_least_columns_give_way_first_unless_they_were_chosen(as_bob: Client) -> None:
    make_job()
    for address, given_way in (("/jobs", 2), ("/jobs?columns=inState", 0), ("/jobs?columns=none", 0)):
        heads = seen(as_bob.get(address)).attributes("th")
        assert sum("p4" in head.get("class", "") for head in heads) == given_way


@pytest.mark.parametrize(
    ("form", "address"),
    [
        ({"filter": "node.last", "match": "!=", "value": "gpu-07"}, "node.last%21=gpu-07"),
        ({"filter": "retries", "match": ">", "value": "1"}, "retries%3E1="),
        ({"filter": "submitted", "match": ">=", "value": "-12h"}, "submitted%3E=-12h"),
        ({"filter": "exitCode.any", "match": "!?=", "value": "-"}, "exitCode.any%3F=no"),
        (
            {"filter": "annotation", "match": "^=", "value": "example.com/a=x=1"},
            "annotation.example.com%2Fa%5E=x%3D1",
        ),
        ({"filter": "annotation", "match": "?=", "value": "x/y"}, "annotation.x%2Fy%3F=yes"),
        ({"filter": "text", "match": "=", "value": "night"}, "text=night"),
    ],
)
def test_a_filter_is_added_with_its_comparison(as_bob: Client, form: dict[str, str], address: str) -> None:
    answer = as_bob.get("/jobs", {"sort": "queue", **form})
    assert answer.headers["Location"] == f"/jobs?{address}&sort=queue"
    assert as_bob.get(answer.headers["Location"]).status_code == 200


def test_a_chip_says_how_it_compares(as_bob: Client) -> None:
    words = seen(as_bob.get("/jobs?node.last!=a&node.last!=b&retries>1&annotation.x/y*=z&finished?=no")).words
    for chip in (
        "Last node is not a or b",
        "Retries above 1",
        "Annotation x/y contains z",
        "Finished has no value",
    ):
        assert chip in words


def test_what_is_shown_is_exported_by_a_link(as_bob: Client) -> None:
    job, _ = make_job("nightly"), make_job("other")
    address = seen(as_bob.get("/jobs?queue=nightly&priority<5&sort=queue&columns=node")).links["Export"]
    assert address == "/api/v1/jobs/export?queue=nightly&priority%3C5=&sort=queue&format=csv"
    written = b"".join(as_bob.get(address)).decode().splitlines()
    assert [line.partition(",")[0] for line in written] == ["jobId", job.id]
