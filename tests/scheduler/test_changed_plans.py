"""What of a plan can still be done when something has changed: never part of a gang, never more than a node has."""

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from scheduler.placement import NodeCapacity, Requirements
from scheduler.planning import Gang, Plan, PlannedLease, PlannedPreemption, QueuedJob, TokenBucket
from scheduler.planning.changed import Changes, Holding, what_holds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RATE = TokenBucket.full(rate=0, burst=0, at=NOW)


def lease(job: str, node: str = "n1", *, gang: str = "") -> PlannedLease:
    return PlannedLease(
        queue="q",
        job=QueuedJob(
            id=job,
            version=1,
            priority=0,
            submitted_at=NOW,
            requirements=Requirements(),
            gang=Gang(id=gang, cardinality=2) if gang else None,
        ),
        node=NodeCapacity(executor="e", name=node, cpu_millicores=1, memory_bytes=1),
    )


def giving_way(run: str, for_job: str, node: str = "n1") -> PlannedPreemption:
    return PlannedPreemption(
        run_id=run, job_id=f"job of {run}", queue="q", executor="e", node=node, reason="", for_job=for_job
    )


def holds(
    leases: Sequence[PlannedLease],
    preemptions: Sequence[PlannedPreemption] = (),
    *,
    gone: Sequence[str] = (),
    closed: Sequence[str] = (),
    ended: Sequence[str] = (),
    stays: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """Jobs leased and runs preempted where these jobs do not wait, nodes are closed, runs ended, runs stay."""
    found = _holding(leases, preemptions, gone=gone, closed=closed, ended=ended, stays=stays)
    return [each.job.id for each in found.leases], [each.run_id for each in found.preemptions]


def _holding(
    leases: Sequence[PlannedLease],
    preemptions: Sequence[PlannedPreemption],
    *,
    gone: Sequence[str],
    closed: Sequence[str],
    ended: Sequence[str],
    stays: Sequence[str],
) -> Holding:
    planned = Plan(
        leases=leases, preemptions=preemptions, unplaced={}, held={}, rate=RATE, queue_rates={}, more=False
    )
    active = {each.run_id for each in preemptions} - set(ended)
    changes = Changes(
        waiting={each.job.id for each in leases} - set(gone),
        open_nodes={("e", each.node.name) for each in leases if each.node.name not in closed},
        active=active,
        may_give_way=active - set(stays),
    )
    return what_holds(planned, changes)


def test_a_plan_about_which_nothing_changed_holds() -> None:
    plan = [lease("a"), lease("b", gang="g"), lease("c", "n2", gang="g")], [giving_way("r", "a")]
    assert holds(*plan) == (["a", "b", "c"], ["r"])


def test_a_job_that_is_gone_and_a_node_that_is_closed_take_nothing() -> None:
    assert holds([lease("a"), lease("b", "n2"), lease("c", "n3")], gone=["a"], closed=["n2"]) == (["c"], [])


def test_a_gang_of_which_one_is_gone_starts_nowhere() -> None:
    assert holds([lease("a", gang="g"), lease("b", "n2", gang="g"), lease("c")], gone=["b"]) == (["c"], [])


def test_a_run_that_ended_by_itself_made_the_room() -> None:
    assert holds([lease("a")], [giving_way("r", "a")], ended=["r"]) == (["a"], [])


def test_a_run_is_spared_when_the_job_it_was_to_make_room_for_is_gone() -> None:
    leases = [lease("a"), lease("b"), lease("c", "n2")]
    assert holds(leases, [giving_way("r", "a")], gone=["a"]) == (["c"], [])


def test_a_run_that_cannot_be_ended_keeps_its_room() -> None:
    leases = [lease("a"), lease("b", "n2")]
    assert holds(leases, [giving_way("r", "a")], stays=["r"]) == (["b"], [])


def test_what_falls_with_one_node_falls_with_its_gang_and_spares_the_runs_of_the_others() -> None:
    leases = [lease("a", "n1", gang="g"), lease("b", "n2", gang="g"), lease("c", "n2")]
    runs = [giving_way("r", "a", "n1"), giving_way("s", "b", "n2")]
    assert holds(leases, runs, stays=["r"]) == ([], [])


NODES = ("n1", "n2", "n3")


@given(st.data())
def test_no_gang_in_part_no_run_ended_for_nothing_no_room_taken_that_is_not_there(
    data: st.DataObject,
) -> None:
    nodes = data.draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=6))
    leases = [
        lease(f"job {number}", node, gang=data.draw(st.sampled_from(["", "g", "h"])))
        for number, node in enumerate(nodes)
    ]
    runs = [
        giving_way(
            f"run {number}", data.draw(st.sampled_from(leases)).job.id, data.draw(st.sampled_from(nodes))
        )
        for number in range(data.draw(st.integers(0, 4)))
    ]

    def some(names: Sequence[str]) -> list[str]:
        return data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []

    ended, stays = some([run.run_id for run in runs]), some([run.run_id for run in runs])
    gone = some([each.job.id for each in leases])
    jobs, ending = holds(leases, runs, gone=gone, closed=some(NODES), ended=ended, stays=stays)
    for name in ("g", "h"):
        members = {each.job.id for each in leases if each.job.gang and each.job.gang.id == name}
        assert members <= set(jobs) or members.isdisjoint(jobs)
    assert all(run.for_job in jobs for run in runs if run.run_id in ending)
    kept = {run.node for run in runs if run.run_id not in (*ended, *ending)}
    assert not any(each.node.name in kept for each in leases if each.job.id in jobs)
