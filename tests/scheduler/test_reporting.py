"""Reports: what executors say of their runs, late, repeated, out of order, or about somebody else's."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies.signals import ContainerEnd
from scheduler.executors.protocol import KilledBy, Output, Report, ReportState
from scheduler.models import Event, Job, Run, RunError, RunOutput
from scheduler.reporting import Recorded, record_reports
from scheduler.states import RunState
from tests.factories import make_executor, make_job, make_run, more_like

pytestmark = pytest.mark.django_db


def leased_run(**fields: Any) -> Run:
    return make_run(make_job(**fields), state=RunState.LEASED)


def report(run: Run, state: ReportState, *, executor: str = "local", **fields: Any) -> Recorded:
    return record_reports(executor=executor, reports=[Report(run_id=str(run.id), state=state, **fields)])


def failure(run: Run, **fields: Any) -> Recorded:
    defaults: dict[str, Any] = {
        "exit_code": 137,
        "category": "oom",
        "message": "Container main failed with exit code 137 because OOMKilled: ",
        "reason": "OOM",
        "containers": (
            ContainerEnd(name="main", exit_code=137, reason="OOMKilled", message="", is_init=False),
        ),
        "killed_by": KilledBy.MEMORY,
        "output": Output(head=b"hello", tail=b"bye\xff", dropped_bytes=7),
    }
    return report(run, ReportState.FAILED, **{**defaults, **fields})


def outcome(recorded: Recorded) -> str:
    return recorded.outcomes[0].outcome


def kinds() -> list[str]:
    return list(Event.objects.order_by("number").values_list("kind", flat=True))


def test_a_run_goes_from_leased_over_pending_and_running_to_succeeded() -> None:
    run = leased_run()
    for state in (ReportState.PENDING, ReportState.RUNNING, ReportState.SUCCEEDED):
        assert (
            outcome(report(run, state, exit_code=0 if state is ReportState.SUCCEEDED else None)) == "recorded"
        )
    run.refresh_from_db()
    assert run.state == "succeeded" and run.settled_at is not None and run.exit_code == 0
    job = Job.objects.get()
    assert job.state == "succeeded" and job.ended_at is not None
    assert kinds() == ["pending", "running", "succeeded"]
    assert Event.objects.get(kind="running").payload["podName"] == f"armada-{job.id}-0"


def test_a_failure_arrives_with_everything_known_and_leaves_the_job_to_settling() -> None:
    run = leased_run()
    report(run, ReportState.RUNNING)
    recorded = failure(run)
    assert outcome(recorded) == "recorded" and recorded.any_to_settle
    run.refresh_from_db()
    assert (run.state, run.exit_code, run.category, run.attempted) == ("failed", 137, "oom", True)
    assert run.settled_at is None and run.fingerprint and run.killed_by == "memory"
    assert RunError.objects.get().containers[0]["reason"] == "OOMKilled"
    output = RunOutput.objects.get()
    assert (bytes(output.head), bytes(output.tail), output.dropped_bytes) == (b"hello", b"bye\xff", 7)
    assert Job.objects.get().state == "running"
    assert "failed" not in kinds()


def test_the_same_report_five_times_is_recorded_once() -> None:
    run = leased_run()
    assert [outcome(failure(run)) for _ in range(5)] == ["recorded"] + ["unchanged"] * 4
    assert RunError.objects.count() == 1


def test_reports_that_come_late_change_nothing_about_an_ended_run() -> None:
    run = leased_run()
    failure(run)
    for state in (
        ReportState.PENDING,
        ReportState.RUNNING,
        ReportState.SUCCEEDED,
        ReportState.LEASE_RETURNED,
    ):
        assert outcome(report(run, state)) == "unchanged"
    run.refresh_from_db()
    assert run.state == "failed" and "succeeded" not in kinds()


def test_states_that_were_skipped_are_told_in_order() -> None:
    run = leased_run()
    report(run, ReportState.SUCCEEDED, exit_code=0)
    assert kinds() == ["pending", "running", "succeeded"]


def test_a_report_about_a_run_of_another_executor_is_refused_and_holds_up_no_other() -> None:
    run, other = leased_run(), leased_run()
    make_executor("stranger")
    Run.objects.filter(id=other.id).update(executor="stranger")
    outcomes = record_reports(
        executor="local",
        reports=[
            Report(run_id=str(other.id), state=ReportState.SUCCEEDED),
            Report(run_id="not a run", state=ReportState.SUCCEEDED),
            Report(run_id=str(run.id), state=ReportState.RUNNING),
        ],
    ).outcomes
    assert [each.outcome for each in outcomes] == ["refused", "refused", "recorded"]
    assert "belongs to executor 'stranger'" in outcomes[0].why
    assert Run.objects.get(id=other.id).state == "leased"


def test_a_lease_that_came_back_is_told_with_whether_it_was_attempted() -> None:
    run = leased_run()
    report(run, ReportState.LEASE_RETURNED, attempted=False, message="the agent stops")
    run.refresh_from_db()
    assert (run.state, run.attempted, run.settled_at) == ("lease_returned", False, None)
    payload = Event.objects.get(kind="leaseReturned").payload
    assert (payload["runAttempted"], payload["reason"]) == (False, "the agent stops")


def test_a_cancelled_run_ends_its_job_when_somebody_asked_for_it() -> None:
    run = leased_run()
    Job.objects.update(state="cancelling", cancel_requested_at=run.leased_at, cancel_user="olga")
    report(run, ReportState.RUNNING)
    assert Job.objects.get().state == "cancelling"
    report(run, ReportState.CANCELLED)
    assert Job.objects.get().state == "cancelled"
    assert kinds()[-1] == "cancelled" and Event.objects.get(kind="cancelled").payload["requestor"] == "olga"


def test_a_cancellation_nobody_asked_for_gives_the_lease_back() -> None:
    run = leased_run()
    report(run, ReportState.CANCELLED)
    run.refresh_from_db()
    assert (run.state, run.attempted) == ("lease_returned", False)


def test_a_reason_longer_than_any_word_for_a_cause_is_kept_as_far_as_it_fits() -> None:
    failure(leased_run(), reason="x" * 253)
    assert RunError.objects.get().reason == "x" * 32


@pytest.mark.parametrize("age", [-5.0, 1e300, float("inf")])
def test_an_impossible_age_puts_the_end_between_the_lease_and_now(age: float) -> None:
    run = leased_run()
    failure(run, age_seconds=age)
    run.refresh_from_db()
    assert run.ended_at is not None and run.recorded_at is not None
    assert run.leased_at <= run.ended_at <= run.recorded_at


def test_five_hundred_reports_use_as_many_queries_as_one() -> None:
    def report_counting(runs: list[Run]) -> int:
        reports = [
            Report(run_id=str(run.id), state=ReportState.FAILED, message="boom", output=Output(head=b"x"))
            for run in runs
        ]
        with CaptureQueriesContext(connection) as queries:
            assert {each.outcome for each in record_reports(executor="local", reports=reports).outcomes} == {
                "recorded"
            }
        return len(queries)

    many = more_like(leased_run().job, 500)
    assert report_counting([leased_run()]) == report_counting(list(Run.objects.filter(job__in=many)))
