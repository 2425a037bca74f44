"""The page of one job."""

import pytest
import yaml
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.jobfile import parse_job_file
from scheduler.models import Event, Job, Run, RunOutput
from scheduler.settling import settle_runs
from scheduler.states import JobState, RunState
from tests.factories import MEBI, make_executor, make_job, make_queue, make_run
from tests.pages.conftest import HTMX
from tests.pages.seen import Seen, seen
from tests.pages.stories import CONFIG, failed_run, retried_job, succeeded_job

pytestmark = pytest.mark.django_db

RETRY = "Rule 1 of oom-grow (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi."


def page_of(client: Client, job: Job, query: str = "") -> Seen:
    answer = client.get(f"/jobs/{job.id}{query}")
    assert answer.status_code == 200
    return seen(answer)


def with_state(job: Job, state: JobState, **fields: object) -> Job:
    ended = {"ended_at": job.submitted_at} if state.is_terminal else {}
    Job.objects.filter(id=job.id).update(state=state, **ended, **fields)
    return Job.objects.get(id=job.id)


def test_the_out_of_memory_story_reads_from_top_to_bottom(as_olga: Client) -> None:
    job = succeeded_job()
    words = page_of(as_olga, job).words
    story = [
        "Succeeded at run 2 with 128Mi of memory instead of 64Mi.",
        "Run 2 succeeded",
        "Retry 1 of 2 retry",
        RETRY,
        "Run 1 failed oom retryable",
        "exit code 137, SIGKILL",
        "ended by the memory limit (cgroup2)",
        "Container main reached 64Mi",
    ]
    places = [words.index(part) for part in story]
    assert places == sorted(places)


def test_a_retry_leads_to_the_policy_that_granted_it(as_olga: Client) -> None:
    page = page_of(as_olga, retried_job())
    assert page.links["oom-grow"] == "/policies/oom-grow?version=1"
    assert "Run 1 failed: out of memory. Waiting for a node for retry 1 of 2 with 128Mi." in page.words


def test_a_run_that_ended_is_deciding_until_it_is_settled(as_olga: Client) -> None:
    job = failed_run().job
    words = page_of(as_olga, job).words
    assert "Run 1 failed: out of memory. Deciding what follows." in words
    assert "awaits a verdict" in words
    settle_runs(config=CONFIG)
    assert RETRY in page_of(as_olga, job).words


def test_the_end_of_all_retries_is_told_in_one_line(as_olga: Client) -> None:
    job = retried_job()
    for _ in range(2):
        make_run(Job.objects.get(id=job.id), state=RunState.FAILED, killed_by="memory")
        settle_runs(config=CONFIG)
    words = page_of(as_olga, job).words
    assert "Failed: out of memory again, and both retries were spent." in words
    assert "Not retried fail_policy_limit" in words
    assert "2 of 2 used" in words


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (
            {"category": "gpu", "killed_by": ""},
            "Failed: category gpu, and no rule of oom-grow (version 1) matched it",
        ),
        ({"category": "", "killed_by": "", "exit_code": 3}, "Failed: exit code 3, and no rule of oom-grow"),
        ({"category": "late", "killed_by": "deadline"}, "Failed: out of time, and no rule of oom-grow"),
    ],
)
def test_a_failure_no_rule_knows_is_told_in_one_line(
    as_olga: Client, failure: dict[str, object], line: str
) -> None:
    run = failed_run(**failure)
    settle_runs(config=CONFIG)
    assert line in page_of(as_olga, run.job).words


@pytest.mark.parametrize(
    ("state", "fields", "line"),
    [
        (JobState.QUEUED, {}, "Waiting for a node."),
        (JobState.REJECTED, {"rejected_because": "No node has 1Ti."}, "Rejected: it can never run here. No node has 1Ti."),
        (JobState.CANCELLED, {"cancel_user": "mira", "cancel_reason": "wrong input"}, "Cancelled by mira. wrong input"),
        (JobState.CANCELLING, {"cancel_user": "mira"}, "Being cancelled; its run is given time to end. Asked for by mira."),
    ],
)  # fmt: skip
def test_a_job_without_a_run_says_where_it_stands(
    as_olga: Client, state: JobState, fields: dict[str, str], line: str
) -> None:
    assert line in page_of(as_olga, with_state(make_job(), state, **fields)).words


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (RunState.LEASED, "Run 1 was leased to local-1 and has not begun."),
        (RunState.PENDING, "Run 1 is starting on local-1."),
        (RunState.RUNNING, "Run 1 is running on local-1."),
    ],
)
def test_a_job_at_work_says_where(as_olga: Client, state: RunState, line: str) -> None:
    assert line in page_of(as_olga, make_run(state=state).job).words


def test_a_run_no_policy_decided_about_says_why(as_olga: Client) -> None:
    run = make_run(state=RunState.FAILED, category="", exit_code=3)
    settle_runs(config=CONFIG)
    words = page_of(as_olga, run.job).words
    assert "Failed: exit code 3." in words
    assert "No policy was asked: the queue has none and there is no default policy." in words


def test_a_run_that_cannot_be_settled_is_shown_as_set_aside(as_olga: Client) -> None:
    run = failed_run()
    Run.objects.filter(id=run.id).update(settle_error="a fault of ours", settle_tries=3)
    assert "Set aside Deciding failed and the run was set aside for an operator: a fault of ours" in (
        page_of(as_olga, run.job).words
    )


def test_runs_stand_side_by_side(as_olga: Client) -> None:
    words = page_of(as_olga, succeeded_job()).words
    assert "Memory 64Mi 128Mi" in words
    assert "Exit code 137 0" in words


def test_output_shows_escape_sequences_and_broken_bytes_without_obeying_them(as_olga: Client) -> None:
    run = make_run(state=RunState.FAILED)
    written = b"\x1b[31mred\x1b[0m\n10%\r20%\r100%\n<b>bold</b> \xff \xe2\x80\xaeevil\x00\n"
    RunOutput.objects.create(run=run, head=written)
    answer = as_olga.get(f"/jobs/{run.job_id}")
    words = seen(answer).words
    assert "\x1b" not in answer.content.decode()
    assert "<b>bold" not in answer.content.decode()
    assert "red 100% <b>bold</b> � \\u202eevil␀" in words


def test_only_the_last_lines_of_long_output_are_shown_and_all_on_request(as_olga: Client) -> None:
    run = make_run(state=RunState.FAILED)
    RunOutput.objects.create(run=run, head=b"".join(b"line %d\n" % n for n in range(1, 101)))
    page = page_of(as_olga, run.job)
    assert "The last 24 of 100 lines" in page.words
    assert "line 76" not in page.words
    whole = page_of(as_olga, run.job, page.links["All lines"].partition("#")[0])
    assert "line 1 line 2 line 3" in whole.words


def test_output_of_an_earlier_run_is_one_link_away(as_olga: Client) -> None:
    job = succeeded_job()
    first, second = job.runs.order_by("number")
    RunOutput.objects.create(run=first, head=b"first words\n")
    RunOutput.objects.create(run=second, head=b"second words\n")
    assert "second words" in page_of(as_olga, job).words
    page = page_of(as_olga, job, "?output=1")
    assert "first words" in page.words
    assert "second words" not in page.words


def test_output_is_downloaded_byte_for_byte_and_never_shown_as_a_page(as_olga: Client) -> None:
    run = make_run(state=RunState.FAILED)
    RunOutput.objects.create(run=run, head=b"<script>\x00", tail=b"\xff")
    answer = as_olga.get(f"/runs/{run.id}/output")
    assert answer.content == b"<script>\x00\xff"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_errors_and_names_of_others_never_become_markup(as_olga: Client) -> None:
    hostile = '"><img src=x onerror=alert(1)>\x1b[2J'
    job = make_job(annotations={hostile: hostile}, labels={"a": hostile}, owner=hostile)
    run = make_run(
        job, state=RunState.FAILED, message=hostile, category=hostile[:20], subcategory=hostile[:20]
    )
    run.error.containers = [{"name": hostile, "exitCode": 1, "reason": hostile, "message": hostile}]
    run.error.warnings = [hostile]
    run.error.save()
    html = as_olga.get(f"/jobs/{job.id}").content.decode()
    assert "<img" not in html
    assert "onerror=alert" in html


def test_events_are_told_newest_first(as_olga: Client) -> None:
    job = retried_job()
    assert Event.objects.filter(job=job).exists()
    assert "failed 1 category oom, retryable: true, policy oom-grow" in page_of(as_olga, job).words


def test_what_is_unfolded_stands_in_the_address(as_olga: Client) -> None:
    job = retried_job()
    folded = [fold for fold in page_of(as_olga, job).attributes("details") if fold.get("data-open")]
    assert ["open" in fold for fold in folded] == [False]
    unfolded = [
        fold for fold in page_of(as_olga, job, "?open=1").attributes("details") if fold.get("data-open")
    ]
    assert ["open" in fold for fold in unfolded] == [True]


def test_the_spec_reads_back_as_a_job_file(as_olga: Client) -> None:
    job = make_job(annotations={"ticket": "FARM-1"}, client_id="mine-1", priority=3)
    payload = {"job": {"priority": 7}}
    Event.objects.create(
        job_set=job.job_set, number=1, job=job, kind="submitted", created=job.submitted_at, payload=payload
    )
    answer = as_olga.get(f"/jobs/{job.id}/spec")
    job_file = parse_job_file(yaml.safe_load(answer.content))
    assert job_file.queue == "nightly"
    assert job_file.items[0].annotations == {"ticket": "FARM-1"}
    assert (job_file.items[0].priority, job_file.items[0].client_id) == (7, "")
    shown = page_of(as_olga, job).words
    assert 'clientId "mine-1" is left out' in shown
    assert all(" ".join(line.split()) in shown for line in answer.content.decode().splitlines())


def test_the_refreshed_part_is_the_part_of_the_page(as_olga: Client) -> None:
    job = succeeded_job()
    page = as_olga.get(f"/jobs/{job.id}").content.decode()
    part = as_olga.get(f"/jobs/{job.id}", headers=HTMX).content.decode()
    assert part.strip() in page


def test_a_job_that_has_ended_is_not_asked_for_again(as_olga: Client) -> None:
    (live,) = (tag for tag in page_of(as_olga, succeeded_job()).attributes("div") if tag.get("id") == "live")
    assert "every" not in live["hx-trigger"]
    (live,) = (
        tag for tag in page_of(as_olga, make_job("other")).attributes("div") if tag.get("id") == "live"
    )
    assert "every" in live["hx-trigger"]


@pytest.mark.parametrize("runs", [1, 20])
def test_the_number_of_queries_does_not_grow_with_the_runs(
    as_olga: Client, runs: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    job = make_job()
    executor = make_executor()
    for _ in range(runs):
        make_run(job, executor=executor, state=RunState.FAILED)
    with django_assert_num_queries(11):
        as_olga.get(f"/jobs/{job.id}")


@pytest.mark.parametrize("job_id", ["nothing", "0" * 26, "01m8j53gvqm9s346q3d25vt4f5"])
def test_a_job_that_is_not_there_is_told_with_a_way_on(as_olga: Client, job_id: str) -> None:
    answer = as_olga.get(f"/jobs/{job_id}")
    assert answer.status_code == 404
    assert f"There is no job '{job_id}'." in seen(answer).words
    assert seen(answer).links["All jobs"] == "/jobs"


def test_a_job_is_cancelled_after_a_question_that_works_without_script(as_olga: Client) -> None:
    job = make_job()
    question = page_of(as_olga, job).links["Cancel…"]
    assert "Cancel this job? queued" in seen(as_olga.get(question)).words
    assert as_olga.get(question, headers=HTMX).content.strip().startswith(b'<h2 id="dialog-head">')
    assert Job.objects.get(id=job.id).state == JobState.QUEUED

    assert as_olga.post(question, {"reason": "wrong input"}).headers["Location"] == f"/jobs/{job.id}"
    page = page_of(as_olga, job)
    assert "Cancelled by olga. wrong input" in page.words
    assert "The job is cancelled." in page.words
    assert "Cancel…" not in page.links


def test_who_may_not_cancel_reads_why_and_is_refused(as_bob: Client) -> None:
    job = make_job()
    page = page_of(as_bob, job)
    assert "Cancel…" not in page.links
    assert "To cancel it, ask an owner of nightly or an operator." in page.words
    assert as_bob.post(f"/jobs/{job.id}/cancel").status_code == 403
    assert Job.objects.get(id=job.id).state == JobState.QUEUED


def test_an_owner_of_the_queue_cancels_its_jobs(as_alice: Client) -> None:
    job = make_job(make_queue("nightly", owners=["alice"]))
    assert as_alice.post(f"/jobs/{job.id}/cancel").status_code == 302
    assert Job.objects.get(id=job.id).state == JobState.CANCELLED


def test_memory_that_was_only_requested_is_shown_as_such(as_olga: Client) -> None:
    job = make_job(memory_bytes=None)
    Job.objects.filter(id=job.id).update(memory_request_bytes=32 * MEBI)
    make_run(Job.objects.get(id=job.id))
    assert "memory 32Mi requested" in page_of(as_olga, job).words


def test_a_long_message_shows_its_beginning_and_unfolds_the_rest(as_bob: Client) -> None:
    job = failed_run(message="\n".join(f"line {number}" for number in range(80))).job
    page = page_of(as_bob, job)
    assert "line 5 74 more lines line 6" in page.words
    unfolds = {each["id"]: each for each in page.attributes("details") if "id" in each}
    assert "open" not in unfolds["message-1"]
    opened = page_of(as_bob, job, "?open=message-1").attributes("details")
    assert [each["id"] for each in opened if "open" in each] == ["message-1"]


def test_a_message_of_a_few_lines_is_not_folded(as_bob: Client) -> None:
    job = failed_run(message="\n".join("abcdefgh")).job
    assert "more line" not in page_of(as_bob, job).words


def test_a_job_that_never_ran_says_so(as_bob: Client) -> None:
    words = page_of(as_bob, make_job(state=JobState.REJECTED, rejected_because="No node has 1Ti.")).words
    assert "It never ran." in words
    assert "No run yet." not in words
    assert "none yet" not in words
