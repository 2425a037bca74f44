"""The journal: what was put is there after any end of the agent."""

from dataclasses import replace
from pathlib import Path

import pytest

from policies.failures import ContainerEnd
from scheduler.agent import journal as journals
from scheduler.agent.journal import Journal, JournalInUseError
from scheduler.agent.judging import Intent, Order
from scheduler.agent.lifecycle import End, Entry
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import EnforcedBy, KilledBy, Output, Report, ReportState

END = End(
    report=Report(
        run_id="r1",
        state=ReportState.FAILED,
        age_seconds=1.5,
        exit_code=137,
        containers=(
            ContainerEnd(name="main", exit_code=137, reason="OOMKilled", message="é\n", is_init=True),
        ),
        killed_by=KilledBy.MEMORY,
        enforced_by=EnforcedBy.CGROUP1,
        warnings=("hot",),
        output=Output(head=b"\xff\x00", tail=b"t", dropped_bytes=7),
    ),
    order=Order.DELETE_THEN_REPORT,
    detected=Instant(boot="b", seconds=2.0, wall=3.0),
    gone=True,
)
LIVE = Entry(run_id="r1", node="n1", pod_name="armada-j1-0")


def reopened(journal: Journal, folder: Path) -> Journal:
    journal.close()
    return Journal(folder)


def test_entries_come_back_as_they_were_put(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "agent")
    other = replace(LIVE, run_id="r2", intent=Intent.CANCEL)
    journal.put([replace(LIVE, end=END), other])
    journal = reopened(journal, tmp_path / "agent")
    assert list(journal) == [replace(LIVE, end=END), other]
    journal.close()


def test_the_last_word_about_a_run_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.put([LIVE, replace(LIVE, run_id="r2")])
    journal.put([replace(LIVE, end=END)])
    journal.forget("r2")
    journal.forget("r2")
    journal = reopened(journal, tmp_path)
    assert list(journal) == [replace(LIVE, end=END)]
    journal.close()


@pytest.mark.parametrize(
    "torn", [b"{", b'{"run":"r9","node"', b"\x00\xff\n", b'["list"]\n', b'{"run":"r9"}\n']
)
def test_a_line_cut_off_by_a_crash_is_ignored(tmp_path: Path, torn: bytes) -> None:
    journal = Journal(tmp_path)
    journal.put([LIVE])
    journal.close()
    with (tmp_path / journals.NAME).open("ab") as file:
        file.write(torn)
    journal = Journal(tmp_path)
    journal.put([replace(LIVE, run_id="r3")])
    journal = reopened(journal, tmp_path)
    assert [entry.run_id for entry in journal] == ["r1", "r3"]
    journal.close()


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "_COMPACT_AFTER_BYTES", 10_000)
    journal = Journal(tmp_path)
    for number in range(300):
        journal.put([replace(LIVE, node=f"n{number}")])
    assert (tmp_path / journals.NAME).stat().st_size < 12_000
    journal = reopened(journal, tmp_path)
    assert [entry.node for entry in journal] == ["n299"]
    journal.close()


def test_only_one_agent_works_with_a_folder(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalInUseError, match="Another agent works with the folder"):
        Journal(tmp_path)
    reopened(journal, tmp_path).close()
