"""The worked example of the page about scheduling comes out as it says."""

import re
from datetime import UTC, datetime, time

from policies.quantity import parse_bytes
from scheduler.placement import NodeCapacity, Requirements, Taint
from scheduler.planning import (
    Gang,
    NodeState,
    Plan,
    PoolState,
    PriorityClass,
    QueuedJob,
    QueueState,
    RunningJob,
    TokenBucket,
    Use,
    plan,
)
from tests.docs.reading import DOCS, text_of

DAY = datetime(2031, 5, 6, tzinfo=UTC)
NO_LIMIT = TokenBucket.full(rate=0.0, burst=0, at=DAY)
CLASSES = {
    "batch": PriorityClass(name="batch", priority=10, preemptible=True),
    "urgent": PriorityClass(name="urgent", priority=20),
}

type Row = dict[str, str]


def tables() -> list[list[Row]]:
    """The tables of the example, in order."""
    _, example = text_of(DOCS / "explanation" / "scheduling.md").split("## A worked example")
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", example, re.MULTILINE):
        head, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
        )
        found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def planned() -> Plan:
    nodes, runs, jobs, *_ = tables()
    running = [_run(row) for row in runs]
    waiting = [(row["queue"], _job(row)) for row in jobs]
    return plan(
        PoolState(
            nodes=[_node(row, running) for row in nodes],
            queues=[_queue(name, waiting, running) for name in {row["queue"] for row in [*jobs, *runs]}],
            running=running,
            rate=NO_LIMIT,
            node_id_label="kubernetes.io/hostname",
            priority_classes=CLASSES,
        )
    )


def test_the_jobs_that_start_and_what_gives_way_are_those_of_the_example() -> None:
    *_, starts, _ = tables()
    found = planned()
    assert {lease.job.id: lease.node.name for lease in found.leases} == {
        row["job"]: row["node"] for row in starts
    }
    assert {each.for_job: each.run_id for each in found.preemptions} == {
        row["job"]: row["instead of"] for row in starts if row["instead of"]
    }
    assert [lease.job.id for lease in found.leases] == ["u1", "a1", "a2"]


def test_the_others_are_told_what_the_example_tells() -> None:
    _, _, jobs, _, waits = tables()
    found = planned()
    by_name = {row["job"]: row for row in jobs}
    for row in waits:
        job = by_name[row["job"]]
        told = found.why_waiting(
            queue=job["queue"],
            priority_class=job["class"],
            gang_id=job["gang of 2"],
            key=_requirements(job).key,
        )
        assert told.startswith(row["why it waits"])
    assert {row["job"] for row in waits} | {lease.job.id for lease in found.leases} | {"t2"} == set(by_name)


def test_the_owner_of_a_preempted_job_reads_the_sentence_of_the_page() -> None:
    page = " ".join(text_of(DOCS / "explanation" / "scheduling.md").split())
    (preemption,) = planned().preemptions
    assert preemption.reason in page


def _node(row: Row, running: list[RunningJob]) -> NodeState:
    held = [run.used for run in running if run.node == row["node"]]
    key, _, value = row["taint"].partition("=")
    capacity = NodeCapacity(
        executor="local",
        name=row["node"],
        taints=(Taint(key=key, value=value),) if key else (),
        cpu_millicores=_millicores(row),
        memory_bytes=parse_bytes(row["memory"]),
    )
    return NodeState(capacity=capacity, used=_total(held))


def _run(row: Row) -> RunningJob:
    return RunningJob(
        run_id=row["run"],
        job_id=f"job of {row['run']}",
        queue=row["queue"],
        executor="local",
        node=row["node"],
        priority_class=row["class"],
        used=Use(cpu_millicores=_millicores(row), memory_bytes=parse_bytes(row["memory"])),
        leased_at=datetime.combine(DAY, time.fromisoformat(row["leased"]), UTC),
    )


def _job(row: Row) -> QueuedJob:
    return QueuedJob(
        id=row["job"],
        version=1,
        priority_class=row["class"],
        priority=0,
        submitted_at=DAY,
        requirements=_requirements(row),
        gang=Gang(id=row["gang of 2"], cardinality=2) if row["gang of 2"] else None,
    )


def _requirements(row: Row) -> Requirements:
    return Requirements(cpu_millicores=_millicores(row), memory_bytes=parse_bytes(row["memory"]))


def _queue(name: str, waiting: list[tuple[str, QueuedJob]], running: list[RunningJob]) -> QueueState:
    return QueueState(
        name=name,
        jobs=[job for queue, job in waiting if queue == name],
        used=_total([run.used for run in running if run.queue == name]),
        rate=NO_LIMIT,
    )


def _total(held: list[Use]) -> Use:
    return Use(
        cpu_millicores=sum(use.cpu_millicores for use in held),
        memory_bytes=sum(use.memory_bytes for use in held),
    )


def _millicores(row: Row) -> int:
    return int(row["CPU"]) * 1000
