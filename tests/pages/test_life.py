"""Cancel, reprioritise and preempt on pages: a question first, one job or all of a filter, without script."""

import pytest
from django.test import Client

from lookout.pages import life
from lookout.templatetags.signs import state_class
from scheduler.models import Event, Job
from scheduler.states import JobState, RunState
from tests.factories import make_executor, make_job, make_queue, make_run
from tests.pages.conftest import HTMX
from tests.pages.seen import Seen, seen

PREEMPTIBLE = "armada-preemptible"


def page_of(client: Client, address: str) -> Seen:
    answer = client.get(address)
    assert answer.status_code == 200
    return seen(answer)


def test_a_job_gets_another_priority(as_olga: Client) -> None:
    job = make_job(priority=7)
    question = page_of(as_olga, f"/jobs/{job.id}").links["Reprioritise…"]
    asked = page_of(as_olga, question)
    assert "Reprioritise this job? queued another place in the line" in asked.words
    assert {"name": "priority", "value": "7"}.items() <= {
        name: each[name] for each in asked.attributes("input") for name in each if each["name"] == "priority"
    }.items()
    assert as_olga.post(question, {"priority": "3"}).headers["Location"] == f"/jobs/{job.id}"
    page = page_of(as_olga, f"/jobs/{job.id}")
    assert "The job has another priority." in page.words
    assert "Priority 3" in page.words


@pytest.mark.parametrize("typed", ["", "-1", "high", "1.5", "99999999999", "9" * 5_000, "٣"])
def test_what_is_no_priority_is_refused(as_olga: Client, typed: str) -> None:
    job = make_job()
    refused = as_olga.post(f"/jobs/{job.id}/reprioritize", {"priority": typed})
    assert refused.status_code == 400
    assert "Takes a whole number from 0 to 2147483647." in seen(refused).words


def test_a_run_is_asked_to_give_way_and_the_job_says_so_until_it_has(as_olga: Client) -> None:
    job = make_run(make_job(priority_class=PREEMPTIBLE), executor=make_executor()).job
    question = page_of(as_olga, f"/jobs/{job.id}").links["Preempt…"]
    assert "running its run gives way, with 30 s of grace" in (page_of(as_olga, question).words)
    as_olga.post(question, {"reason": "room for the report"})
    page = page_of(as_olga, f"/jobs/{job.id}")
    assert (
        "Being preempted; its run is given time to end. Asked for by olga. room for the report" in page.words
    )
    assert "preempting 1 by olga: room for the report" in page.words
    as_olga.post(question)
    assert "Nothing changed: it was asked before" in page_of(as_olga, f"/jobs/{job.id}").words


def test_preemption_is_offered_only_where_it_can_be(as_olga: Client) -> None:
    waits = make_job(priority_class=PREEMPTIBLE)
    stays = make_run(make_job(), executor=make_executor()).job
    for job in (waits, stays):
        assert "Preempt…" not in page_of(as_olga, f"/jobs/{job.id}").links
    asked = page_of(as_olga, f"/jobs/{stays.id}/preempt")
    assert "running is of a priority class that is not preemptible, nothing changes" in asked.words
    assert any("disabled" in button for button in asked.attributes("button"))
    refused = as_olga.post(f"/jobs/{stays.id}/preempt")
    assert refused.status_code == 409
    assert "not preemptible" in seen(refused).words


def test_a_preempted_job_says_why(as_bob: Client) -> None:
    job = make_run(make_job(), executor=make_executor()).job
    job.state, job.ended_at = JobState.PREEMPTED, job.submitted_at
    job.save()
    reason = {"reason": "Preempted for 01m8…"}
    Event.objects.create(
        job_set=job.job_set, number=1, job=job, kind="failed", created=job.submitted_at, payload=reason
    )
    assert "Preempted: its run gave way. Preempted for 01m8…" in page_of(as_bob, f"/jobs/{job.id}").words


def test_every_state_of_a_job_or_a_run_has_a_sign(as_bob: Client) -> None:
    drawn = {each["id"] for each in page_of(as_bob, "/jobs").attributes("symbol")}
    assert {f"s-{state_class(state)}" for state in (*JobState, *RunState)} <= drawn


def test_all_jobs_of_a_filter_are_cancelled_after_a_question(as_olga: Client) -> None:
    make_run(make_job(job_set="a"), executor=make_executor())
    for _ in range(2):
        make_job(job_set="a")
    make_job(job_set="a", state=JobState.FAILED), make_job(job_set="b")
    address = "/jobs?queue=nightly&jobSet=a"
    question = page_of(as_olga, address).links["Cancel all…"]
    assert question == "/cancel-jobs?queue=nightly&jobSet=a"
    asked = page_of(as_olga, question)
    assert "Cancel 3 jobs?" in asked.words
    assert "of which this is true: queue is nightly; job set is a." in asked.words
    assert "queued 2 never starts" in asked.words
    assert "running 1 each run is stopped, with its grace" in asked.words
    assert as_olga.get(question, headers=HTMX).content.strip().startswith(b'<h2 id="dialog-head">')

    done = as_olga.post(question, {"reason": "wrong input"})
    assert done.headers["Location"] == address
    assert "2 jobs cancelled. 1 job asked to end." in page_of(as_olga, address).words
    assert set(Job.objects.values_list("job_set__name", "state")) == {
        ("a", "cancelled"),
        ("a", "cancelling"),
        ("a", "failed"),
        ("b", "queued"),
    }
    as_olga.post(question)
    assert "Nothing changed: there are no such jobs." in page_of(as_olga, address).words


def test_all_jobs_of_a_queue_in_some_states_are_reprioritised(as_olga: Client) -> None:
    make_job(), make_run(make_job(), executor=make_executor())
    as_olga.post("/reprioritize-jobs?queue=nightly&state=queued", {"priority": "4"})
    assert set(Job.objects.values_list("state", "priority")) == {("queued", 4), ("running", 0)}


def test_all_runs_of_a_queue_that_may_are_asked_to_give_way(as_olga: Client) -> None:
    executor = make_executor()
    make_run(make_job(), executor=executor), make_run(make_job(priority_class=PREEMPTIBLE), executor=executor)
    make_job(priority_class=PREEMPTIBLE)
    asked = page_of(as_olga, "/preempt-jobs?queue=nightly").words
    assert "Preempt 1 job?" in asked
    assert "running 1 each run gives way, with its grace" in asked
    assert "queued 1 has no run, nothing changes" in asked
    assert "running 1 is of a priority class that is not preemptible, nothing changes" in asked
    as_olga.post("/preempt-jobs?queue=nightly")
    assert "1 job asked to give way." in page_of(as_olga, "/jobs?queue=nightly").words
    asked = page_of(as_olga, "/preempt-jobs?queue=nightly").words
    assert "Preempt 0 jobs?" in asked
    assert "running 1 was asked before or is ending, nothing changes" in asked


def test_any_filter_is_asked_about_in_words_and_done_to_all_it_means(as_olga: Client) -> None:
    jobs = [make_job(queue, owner=owner) for queue in ("nightly", "weekly") for owner in ("bob", "carol")]
    question = page_of(as_olga, "/jobs?owner=bob&queue!=other&retries<=2").links["Reprioritise all…"]
    asked = page_of(as_olga, question)
    assert "Reprioritise 2 jobs?" in asked.words
    assert "owner is bob; queue is not other; retries up to 2." in asked.words
    as_olga.post(question, {"priority": "3"})
    assert set(Job.objects.filter(priority=3)) == {jobs[0], jobs[2]}


def test_more_jobs_than_are_counted_are_asked_about_all_the_same(
    as_olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "MOST_COUNTED", 2)
    for _ in range(3):
        make_job()
    asked = page_of(as_olga, "/cancel-jobs?queue=nightly")
    assert "Cancel more than 2 jobs?" in asked.words
    assert "queued never starts" in asked.words


@pytest.mark.parametrize(
    "filters", ["", "?queue=ended", "?state=failed", "?queue=nightly&state=failed&state=succeeded"]
)
def test_nothing_is_offered_of_all_jobs_there_are_nor_of_those_that_have_ended(
    as_olga: Client, filters: str
) -> None:
    make_job(), make_job(state=JobState.FAILED)
    make_job("ended", state=JobState.FAILED)
    links = page_of(as_olga, f"/jobs{filters}").links
    assert not [words for words in links if " all…" in words]
    for word in ("cancel", "reprioritize", "preempt"):
        as_olga.post(f"/{word}-jobs{filters}", {"priority": "1"})
    assert set(Job.objects.values_list("state", "priority")) == {("queued", 0), ("failed", 0)}


def test_where_nothing_runs_nothing_is_asked_to_give_way(as_olga: Client) -> None:
    make_job()
    assert "Preempt all…" not in page_of(as_olga, "/jobs?queue=nightly").links
    make_run(make_job(), executor=make_executor())
    assert "Preempt all…" in page_of(as_olga, "/jobs?queue=nightly").links
    assert "Preempt all…" not in page_of(as_olga, "/jobs?queue=nightly&state=queued").links


def test_a_filter_that_means_nothing_is_refused(as_olga: Client) -> None:
    for filters, why in (
        ("", "Filter the list of jobs first"),
        ("?nonsense=1", "There is no filter 'nonsense'"),
        ("?state=queued&queue=", "queue has no value"),
    ):
        for answer in (as_olga.get(f"/cancel-jobs{filters}"), as_olga.post(f"/cancel-jobs{filters}")):
            assert answer.status_code == 400
            assert why in seen(answer).words


def test_whose_queues_they_are_not_all_is_told_so_and_nothing_is_done(as_bob: Client) -> None:
    make_queue("his", owners=["bob"]), make_queue("hers", owners=["alice"])
    make_job("his", owner="bob"), make_job("hers", owner="bob")
    assert "Cancel all…" in page_of(as_bob, "/jobs?owner=bob").links
    refused = as_bob.post("/cancel-jobs?owner=bob")
    assert refused.status_code == 403
    assert "Jobs of queue 'hers' are meant too." in seen(refused).words
    assert set(Job.objects.values_list("state", flat=True)) == {"queued"}
    assert "Cancel all…" not in page_of(as_bob, "/jobs?owner=bob&queue=his&queue=hers").links


def test_who_may_not_is_offered_nothing_and_refused(as_bob: Client) -> None:
    make_queue("nightly", owners=["alice"])
    job = make_job("nightly")
    links = page_of(as_bob, "/jobs?queue=nightly").links
    assert not [words for words in links if " all…" in words]
    for word in ("cancel", "reprioritize", "preempt"):
        assert as_bob.post(f"/{word}-jobs?queue=nightly").status_code == 403
        assert as_bob.post(f"/jobs/{job.id}/{word}").status_code == 403
        for address, why in ((f"/{word}-jobs?queue=nightly", "them"), (f"/jobs/{job.id}/{word}", "it")):
            asked = page_of(as_bob, address)
            assert f"To {word} {why}, ask an owner of" in asked.words
            assert any("disabled" in button for button in asked.attributes("button"))
    assert Job.objects.get().state == "queued"
