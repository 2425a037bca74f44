"""delete_first_lifecycle.json: removing before reporting, look by look, with a journal on disk between the looks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from policies.category_documents import parse_categories
from policies.failures import ContainerEnd, Signals
from scheduler.agent import lifecycle
from scheduler.agent.journal import Journal
from scheduler.agent.judging import Judge
from scheduler.agent.lifecycle import Entry, Limits, Step
from scheduler.config import seconds_of
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import Observation, Remains, Report, RunPhase
from tests.conformance.cases import Case, cases
from tests.conformance.pods import known

GIVEN = ("stuck_terminating_pod_expiry", "classified_as", "cycles", "expect_report")
CYCLE = (
    *("at", "after", "note", "delete_fails", "report_fails", "executor_restarts"),
    *("pod_deletion_timestamp", "pod_removed_by_cluster_before_cycle"),
)


def all_cases() -> list[Any]:
    return cases("delete_first_lifecycle.json", expected_keys=("cycles", "expect_report"))


@pytest.mark.parametrize("case", all_cases())
def test_remains_go_before_the_report_as_recorded(case: Case, tmp_path: Path) -> None:
    case.refuse_unknown_keys(GIVEN, ("cycles", "expect_report"))
    agent = _Agent(folder=tmp_path, expiry=seconds_of(case.given["stuck_terminating_pod_expiry"]))
    agent.sees_a_failure(case.given["classified_as"])
    after = []
    for cycle in case.expect["cycles"]:
        known(cycle, CYCLE)
        agent.looks(cycle)
        after.append({**cycle, "after": agent.state})
    case.check({"cycles": after, "expect_report": agent.told(case.expect["expect_report"])})
    agent.journal.close()


@dataclass(kw_only=True)
class _Agent:
    """A run in a journal, and the looks at it. The remains and the scheduler are what each cycle says of them."""

    folder: Path
    expiry: float
    remains_are_there: bool = True
    sent: list[Report] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder)

    def sees_a_failure(self, classified_as: Mapping[str, str]) -> None:
        rule = {"onExitCodes": {"operator": "In", "values": [1]}}
        rule |= {"subcategory": classified_as["failure_subcategory"]}  # type: ignore[dict-item]
        category = {"name": classified_as["failure_category"], "action": "Delete", "rules": [rule]}
        judge = Judge(categories=parse_categories({"enabled": True, "categories": [category]}))
        seen = Observation(
            run_id="r1",
            phase=RunPhase.FAILED,
            signals=Signals(containers=(ContainerEnd(name="main", exit_code=1),)),
        )
        entry = Entry(run_id="r1", node="n1", pod_name="armada-j1-0")
        self.journal.put([lifecycle.end_of(entry, seen, judge, now=_at(0.0))])

    def looks(self, cycle: Mapping[str, Any]) -> None:
        now = seconds_of(cycle.get("at", "0s"))
        if cycle.get("executor_restarts"):
            self.journal.close()
            self.journal = Journal(self.folder)
        if cycle.get("pod_removed_by_cluster_before_cycle"):
            self.remains_are_there = False
        deleted = cycle.get("pod_deletion_timestamp")
        remains = Remains(
            present=self.remains_are_there,
            deleting_seconds=None if deleted is None else now - seconds_of(deleted),
        )
        entry = self.journal.get("r1")
        assert entry is not None
        assert entry.end is not None
        limits = Limits(stuck_terminating_seconds=self.expiry)
        for step in lifecycle.next_steps(entry.end, remains, now=_at(now), limits=limits):
            self._carry_out(entry, step, now, cycle)

    def _carry_out(self, entry: Entry, step: Step, now: float, cycle: Mapping[str, Any]) -> None:
        terminates_slowly = "pod_deletion_timestamp" in cycle or cycle.get("executor_restarts")
        match step:
            case Step.REMOVE:
                if not cycle.get("delete_fails") and not terminates_slowly:
                    self.remains_are_there = False
            case Step.FORGET:
                self.journal.forget("r1")
            case Step.REPORT | Step.REPORT_STUCK if not cycle.get("report_fails"):
                self.sent.append(lifecycle.due_report(entry, step, now=_at(now)))
                self.journal.put([lifecycle.told(entry)])
                if not self.remains_are_there:
                    self.journal.forget("r1")

    @property
    def state(self) -> dict[str, Any]:
        return {
            "pod_gone": not self.remains_are_there,
            "reports_sent_total": len(self.sent),
            "issue_open": "r1" in self.journal,
        }

    def told(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """What was reported, under the keys that the case lists."""
        report = self.sent[-1]
        told: dict[str, Any] = {
            "count": len(self.sent),
            "failure_category": report.category,
            "failure_subcategory": report.subcategory,
            "terminal": report.state.is_end,
        }
        if (fragment := wanted.get("message_contains")) and fragment in report.message:
            told["message_contains"] = fragment
        return told


def _at(seconds: float) -> Instant:
    return Instant(boot="b", seconds=seconds, wall=seconds)
