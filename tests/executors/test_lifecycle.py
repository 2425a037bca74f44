"""What an agent does about an ended run, as values: one classification, then a step at each look."""

from dataclasses import replace

import pytest

from policies.category_documents import parse_categories
from policies.failed_checks import parse_failed_checks
from policies.failures import (
    ContainerEnd,
    InternalSubcategory,
    PodEvent,
    Signals,
    internal_failure,
)
from scheduler.agent import lifecycle
from scheduler.agent.judging import Intent, Judge, Order
from scheduler.agent.lifecycle import End, Entry, Limits, Step
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import (
    ExitRecord,
    KilledBy,
    Observation,
    Remains,
    Report,
    ReportState,
    RunPhase,
    Trouble,
)

HERE, GONE = Remains(present=True), Remains(present=False)
LIMITS = Limits(stuck_terminating_seconds=180, retain_seconds=600)
ENTRY = Entry(run_id="r1", node="n1", pod_name="armada-j1-0")
JUDGE = Judge(
    categories=parse_categories(
        {
            "enabled": True,
            "categories": [
                {"name": "kept", "rules": [{"onTerminationMessage": {"pattern": "^kept"}}]},
                {
                    "name": "oom",
                    "action": "Delete",
                    "rules": [{"onConditions": ["OOMKilled"], "hint": "more"}],
                },
                {
                    "name": "gpu",
                    "action": "Delete",
                    "rules": [{"onPodEvents": {"regexp": "gpu", "type": "Warning"}}],
                },
            ],
        }
    )
)


def at(seconds: float) -> Instant:
    return Instant(boot="b", seconds=seconds, wall=1e9 + seconds)


def failed(reason: str = "Error", message: str = "", code: int = 137, **more: object) -> Observation:
    signals = Signals(containers=(ContainerEnd(name="main", exit_code=code, reason=reason, message=message),))
    seen = Observation(run_id="r1", phase=RunPhase.FAILED, signals=signals, exit=ExitRecord(exit_code=code))
    return replace(seen, **more)  # type: ignore[arg-type]


def ended(seen: Observation, entry: Entry = ENTRY, judge: Judge = JUDGE) -> End:
    end = lifecycle.end_of(entry, seen, judge, now=at(0)).end
    assert end is not None
    return end


def steps(end: End, remains: Remains, seconds: float = 0) -> tuple[Step, ...]:
    return lifecycle.next_steps(end, remains, now=at(seconds), limits=LIMITS)


class TestClassification:
    def test_a_delete_category_is_removed_first_and_then_reported_with_its_hint(self) -> None:
        end = ended(failed("OOMKilled"))
        assert end.order is Order.DELETE_THEN_REPORT
        assert (end.report.category, end.report.reason, end.report.hint) == ("oom", "OOM", "more")
        assert end.report.message == "Container main failed with exit code 137 because OOMKilled: \n\n\nmore"

    def test_an_earlier_retain_rule_decides_about_the_remains_and_the_report_alike(self) -> None:
        end = ended(failed("OOMKilled", "kept in memory"))
        assert (end.order, end.report.category) == (Order.REPORT_AND_RETAIN, "kept")

    def test_events_count_in_every_classification(self) -> None:
        signals = Signals(events=(PodEvent(type="Warning", reason="Failed", message="no gpu"),))
        assert ended(failed(signals=signals)).report.category == "gpu"

    def test_what_nothing_recognises_is_retained_without_a_category(self) -> None:
        end = ended(failed(code=1))
        assert (end.order, end.report.category) == (Order.REPORT_AND_RETAIN, "")
        assert end.report.reason == "AppError"

    def test_a_failure_the_executor_names_is_not_classified(self) -> None:
        node = internal_failure(InternalSubcategory.NODE_FAILURE)
        end = ended(failed("OOMKilled", failure=node, phase=RunPhase.LOST))
        assert (end.report.category, end.report.subcategory) == ("internal", "node-failure")
        assert end.order is Order.DELETE_THEN_REPORT

    def test_the_first_end_stands(self) -> None:
        once = lifecycle.end_of(ENTRY, failed("OOMKilled"), JUDGE, now=at(0))
        assert lifecycle.end_of(once, failed(code=1), JUDGE, now=at(5)) is once


class TestIntents:
    STOPPED = failed(exit=ExitRecord(exit_code=143, killed_by=KilledBy.STOP))

    @pytest.mark.parametrize(
        ("intent", "state", "attempted"),
        [
            (Intent.CANCEL, ReportState.CANCELLED, True),
            (Intent.RETURN, ReportState.LEASE_RETURNED, False),
            (Intent.NONE, ReportState.LEASE_RETURNED, False),
        ],
    )
    def test_what_a_stopped_run_ends_as(self, intent: Intent, state: ReportState, attempted: bool) -> None:
        end = ended(self.STOPPED, replace(ENTRY, intent=intent))
        assert (end.report.state, end.report.category) == (state, "")
        assert end.report.attempted is attempted
        assert end.order is Order.DELETE_THEN_REPORT

    def test_a_run_that_ended_before_the_stop_ends_as_it_did(self) -> None:
        end = ended(failed("OOMKilled"), replace(ENTRY, intent=Intent.CANCEL))
        assert (end.report.state, end.report.category) == (ReportState.FAILED, "oom")

    def test_a_forgotten_run_is_told_to_nobody(self) -> None:
        end = ended(self.STOPPED, replace(ENTRY, intent=Intent.FORGET))
        assert steps(end, HERE) == (Step.REMOVE,)
        assert steps(end, GONE) == (Step.FORGET,)

    def test_a_run_lost_while_its_agent_was_leaving_is_returned(self) -> None:
        lost = failed(phase=RunPhase.LOST, failure=internal_failure(InternalSubcategory.NODE_FAILURE))
        assert ended(lost, replace(ENTRY, intent=Intent.RETURN)).report.state is ReportState.LEASE_RETURNED


class TestTroubles:
    DELAYED = Observation(run_id="r1", phase=RunPhase.PENDING, trouble=Trouble.START_DELAYED)
    LATE = Observation(run_id="r1", phase=RunPhase.RUNNING, trouble=Trouble.STARTED_LATE)

    def test_a_run_that_starts_while_its_lease_goes_back_has_failed_after_all(self) -> None:
        entry = lifecycle.end_of(ENTRY, self.DELAYED, JUDGE, now=at(0))
        assert entry.end is not None
        assert entry.end.report.state is ReportState.LEASE_RETURNED
        late = ended(self.LATE, entry)
        assert (late.report.state, late.report.subcategory) == (ReportState.FAILED, "issue-handler-error")

    def test_once_the_lease_is_back_it_stays_so(self) -> None:
        entry = lifecycle.told(lifecycle.end_of(ENTRY, self.DELAYED, JUDGE, now=at(0)))
        assert lifecycle.end_of(entry, self.LATE, JUDGE, now=at(1)) is entry

    def test_a_run_in_trouble_that_was_to_be_cancelled_is_cancelled(self) -> None:
        entry = replace(ENTRY, intent=Intent.CANCEL)
        assert ended(self.DELAYED, entry).report.state is ReportState.CANCELLED

    def test_a_start_that_is_impossible_is_told_at_once_where_its_category_retains(self) -> None:
        seen = Observation(run_id="r1", phase=RunPhase.PENDING, trouble=Trouble.START_IMPOSSIBLE)
        assert ended(seen).order is Order.REPORT_THEN_DELETE

    def test_failed_checks_go_before_the_categories_and_keep_what_those_say(self) -> None:
        checks = parse_failed_checks({"containerStatuses": [{"messageRegexp": "^try elsewhere$"}]})
        end = ended(failed("OOMKilled", "try elsewhere"), judge=replace(JUDGE, failed_checks=checks))
        assert (end.report.state, end.report.attempted) == (ReportState.LEASE_RETURNED, True)
        assert (end.order, end.report.category) == (Order.DELETE_THEN_REPORT, "oom")


class TestSteps:
    DELETED = ended(failed("OOMKilled"))
    RETAINED = ended(failed(code=1))

    def test_delete_first_then_report_then_forget(self) -> None:
        assert steps(self.DELETED, HERE) == (Step.REMOVE,)
        assert steps(self.DELETED, GONE) == (Step.REPORT,)
        assert steps(replace(self.DELETED, told=True), GONE) == (Step.FORGET,)

    def test_remains_that_do_not_go_are_reported_once_the_time_has_passed(self) -> None:
        assert steps(self.DELETED, HERE, seconds=180) == (Step.REMOVE,)
        assert steps(self.DELETED, HERE, seconds=181) == (Step.REPORT_STUCK, Step.REMOVE)
        assert steps(replace(self.DELETED, told=True), HERE, seconds=500) == (Step.REMOVE,)

    def test_the_clock_starts_with_the_deletion_where_that_leaves_a_mark(self) -> None:
        assert steps(self.DELETED, Remains(present=True, deleting_seconds=120), seconds=240) == (Step.REMOVE,)
        assert Step.REPORT_STUCK in steps(
            self.DELETED, Remains(present=True, deleting_seconds=181), seconds=301
        )

    def test_remains_that_go_late_bring_the_ordinary_report(self) -> None:
        assert steps(self.DELETED, GONE, seconds=500) == (Step.REPORT,)

    def test_the_report_about_being_stuck_has_the_built_in_category_and_no_hint(self) -> None:
        entry = lifecycle.end_of(ENTRY, failed("OOMKilled"), JUDGE, now=at(0))
        report = lifecycle.due_report(entry, Step.REPORT_STUCK, now=at(200))
        assert (report.category, report.subcategory, report.hint) == ("internal", "stuck-terminating", "")
        assert "could not be deleted" in report.message
        assert (report.reason, report.age_seconds) == ("OOM", 200)

    def test_retained_remains_are_reported_at_once_and_kept_for_a_while(self) -> None:
        assert steps(self.RETAINED, HERE) == (Step.REPORT,)
        told = replace(self.RETAINED, told=True)
        assert steps(told, HERE, seconds=599) == ()
        assert steps(told, HERE, seconds=601) == (Step.REMOVE,)
        assert steps(told, GONE, seconds=601) == (Step.FORGET,)

    def test_a_success_is_reported_first_and_then_removed(self) -> None:
        seen = Observation(run_id="r1", phase=RunPhase.SUCCEEDED, exit=ExitRecord(exit_code=0))
        end = ended(seen)
        assert steps(end, HERE) == (Step.REPORT,)
        assert steps(replace(end, told=True), HERE) == (Step.REMOVE,)

    def test_a_taken_name_is_freed_before_the_lease_goes_back(self) -> None:
        end = lifecycle.without_run(ENTRY, "taken", now=at(0)).end
        assert end is not None
        assert (steps(end, HERE), steps(end, GONE)) == ((Step.REMOVE,), (Step.REPORT,))
        assert end.report.attempted is True

    def test_a_taken_name_that_will_not_go_sends_the_lease_back_all_the_same(self) -> None:
        end = lifecycle.without_run(ENTRY, "taken", now=at(0)).end
        assert end is not None
        assert steps(end, HERE, seconds=181) == (Step.REPORT, Step.REMOVE)

    def test_what_has_no_remains_is_told_and_forgotten_whatever_lies_under_the_name(self) -> None:
        end = lifecycle.impossible(ENTRY, "no command", now=at(0)).end
        assert end is not None
        assert steps(end, HERE) == (Step.REPORT,)
        assert steps(replace(end, told=True), HERE) == (Step.FORGET,)

    def test_output_is_not_kept_once_it_was_told(self) -> None:
        entry = lifecycle.told(lifecycle.end_of(ENTRY, failed("OOMKilled"), JUDGE, now=at(0)))
        assert entry.end is not None
        assert (entry.end.told, entry.end.report.output) == (True, None)
        assert isinstance(entry.end.report, Report)


def test_an_age_is_told_across_a_restart_of_the_machine_by_the_wall_clock() -> None:
    before = Instant(boot="a", seconds=5000.0, wall=1e9)
    assert before.age(Instant(boot="a", seconds=5003.0, wall=0.0)) == 3.0
    assert before.age(Instant(boot="b", seconds=10.0, wall=1e9 + 60)) == 60.0
    assert before.age(Instant(boot="b", seconds=10.0, wall=0.0)) == 0.0
