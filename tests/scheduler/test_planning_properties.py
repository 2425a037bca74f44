"""What holds of every plan, however odd the pool."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from scheduler.placement import Expression, NodeCapacity, Requirements, Taint, Toleration, barred
from scheduler.planning import (
    Gang,
    NodeState,
    Plan,
    PlannedLease,
    PoolState,
    QueuedJob,
    QueueState,
    RunningJob,
    TokenBucket,
    Use,
    plan,
)
from scheduler.planning.fairness import Measure
from scheduler.planning.shares import shares_of
from tests.scheduler.planned_pools import CLASSES, HOSTNAME, NO_LIMIT, NOON, node, order, pool, queue

RESOURCES = ("cpu", "memory", "gpu")


def templates[T](make: Callable[[Random], T], *, count: int) -> st.SearchStrategy[T]:
    """One of so many that were made up once: a pool of them is drawn quickly."""
    made_up = Random(7)  # noqa: S311  # nothing secret
    return st.sampled_from([make(made_up) for _ in range(count)])


def mostly[T](chance: Random, usual: T, *others: T) -> T:
    """The usual one four times out of five."""
    return usual if chance.random() < 0.8 else chance.choice(others)


def _requirements(chance: Random) -> Requirements:
    return Requirements(
        cpu_millicores=chance.randint(0, 5),
        memory_bytes=chance.randint(0, 5),
        resources=mostly(chance, (), (("gpu", 1),), (("gpu", 2),)),
        node_selector=mostly(chance, (), (("disk", "ssd"),)),
        affinity=mostly(chance, (), ((Expression("disk", "NotIn", ("ssd",)),),)),
        tolerations=mostly(chance, (), (Toleration("gpu", "Exists"),)),
        avoided_nodes=mostly(chance, (), ("n0",), ("n0", "n1")),
    )


def _node(chance: Random) -> NodeState:
    return node(
        "n",
        labels={"disk": chance.choice(["ssd", "hdd"])},
        taints=mostly(chance, (), (Taint(key="gpu", value="only"),)),
        cpu_millicores=mostly(chance, 12, 5, 0),
        memory_bytes=mostly(chance, 12, 5, 0),
        resources={"gpu": chance.randint(0, 3)},
        schedulable=mostly(chance, True, False),
        used=mostly(chance, Use(), Use(cpu_millicores=3), Use(memory_bytes=3)),
    )


def _job(chance: Random) -> QueuedJob:
    return QueuedJob(
        id="",
        version=1,
        priority_class=mostly(chance, "normal", "low", "steady", "urgent"),
        priority=chance.randint(0, 2),
        submitted_at=NOON,
        requirements=_requirements(chance),
        gang=mostly(
            chance,
            None,
            Gang(id="g", cardinality=1),
            Gang(id="h", cardinality=2),
            Gang(id="i", cardinality=2, uniformity_label="disk"),
        ),
    )


def _run(chance: Random) -> RunningJob:
    gang_id = mostly(chance, "", "g")
    return RunningJob(
        run_id="",
        job_id="",
        queue=mostly(chance, "b", "a"),
        executor="local",
        node=mostly(chance, chance.choice(["n0", "n1"]), "n2", "gone"),
        # Members of a gang are of one class: no others are accepted.
        priority_class="normal" if gang_id else mostly(chance, "normal", "low", "steady", "urgent"),
        used=Use(
            cpu_millicores=chance.randint(0, 5),
            memory_bytes=chance.randint(0, 5),
            resources={"gpu": mostly(chance, 0, 1)},
        ),
        leased_at=NOON,
        gang_id=gang_id,
    )


def nodes() -> st.SearchStrategy[list[NodeState]]:
    """Up to four nodes that tell their names."""
    return st.lists(templates(_node, count=60), max_size=4).map(
        lambda found: [
            replace(each, capacity=_named(each.capacity, f"n{number}")) for number, each in enumerate(found)
        ]
    )


def _named(capacity: NodeCapacity, name: str) -> NodeCapacity:
    return replace(capacity, name=name, labels={**capacity.labels, HOSTNAME: name})


def jobs(queue: str) -> st.SearchStrategy[list[QueuedJob]]:
    """Jobs that wait in a queue."""
    return st.lists(templates(_job, count=300), min_size=1, max_size=8).map(
        lambda found: [each._replace(id=f"{queue}{number}") for number, each in enumerate(found)]
    )


def plain(waiting: Iterable[QueuedJob]) -> list[QueuedJob]:
    """The jobs of one class, each for itself."""
    return [each._replace(priority_class="normal", gang=None) for each in waiting]


runs = st.lists(templates(_run, count=200), min_size=2, max_size=10).map(
    lambda found: [
        replace(each, run_id=f"r{number}", job_id=f"j{number}") for number, each in enumerate(found)
    ]
)
buckets = templates(
    lambda chance: mostly(
        chance, NO_LIMIT, *(TokenBucket.full(rate=1.0, burst=burst, at=NOON) for burst in (0, 2, 5))
    ),
    count=20,
)
rules = templates(
    lambda chance: {
        "fair_share_resources": chance.choice([("cpu", "memory"), RESOURCES]),
        "protected_fraction": chance.choice([0.0, 0.5, 1.0]),
        "limits": mostly(chance, {}, {"low": {"cpu": 0.5}, "normal": {"memory": 0.2, "gpu": 0.0}}),
        "leases_per_round": mostly(chance, 5_000, 3),
    },
    count=60,
)
factors = st.sampled_from([1.0, 2.0])
any_plan = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Inputs are small: a busy machine is no reason to give up."""


@st.composite
def pools(draw: st.DrawFn) -> PoolState:
    """Anything goes."""
    queues = [
        queue(
            *draw(jobs(name)),
            name=name,
            priority_factor=draw(factors),
            cordoned=draw(st.sampled_from([False, False, False, False, True])),
            rate=draw(buckets),
        )
        for name in "ab"
    ]
    return pool(*queues, nodes=draw(nodes()), running=draw(runs), rate=draw(buckets), **draw(rules))


@st.composite
def plain_pools(draw: st.DrawFn) -> PoolState:
    """One class, nothing at work that could give way, no gangs, no limits."""
    queues = [
        queue(
            *plain(draw(jobs(name))),
            name=name,
            priority_factor=draw(factors),
            used=Use(cpu_millicores=draw(st.integers(0, 5))),
        )
        for name in "abc"
    ]
    return pool(*queues, nodes=draw(nodes()))


@any_plan
@given(pools())
def test_no_node_is_overcommitted_or_taken_by_what_it_refuses(state: PoolState) -> None:
    found = plan(state)
    left = Left(state, found.leases, without={each.run_id for each in found.preemptions})
    for lease in found.leases:
        assert lease.node.schedulable
        assert barred(lease.job.requirements, lease.node, node_id_label=HOSTNAME) is None
        assert left.is_enough_on(lease.node.name, asked=lease.job.requirements)
    assert len(set(order(found))) == len(found.leases)


@any_plan
@given(pools())
def test_no_gang_is_placed_in_part(state: PoolState) -> None:
    found = plan(state)
    started = set(order(found))
    for waiting in state.queues:
        for of, members in by_gang(waiting.jobs).items():
            there = started.intersection(members)
            assert there in (set(), set(members))
            assert not there or len(members) >= of.cardinality
            values = {
                lease.node.labels.get(of.uniformity_label)
                for lease in found.leases
                if lease.job.id in members
            }
            assert not of.uniformity_label or len(values) <= 1


@any_plan
@given(pools())
def test_no_limit_is_exceeded(state: PoolState) -> None:
    found = plan(state)
    assert len(found.leases) <= state.leases_per_round
    assert not state.rate.rate or len(found.leases) <= state.rate.burst
    for waiting in state.queues:
        started = [lease for lease in found.leases if lease.queue == waiting.name]
        assert not waiting.rate.rate or len(started) <= waiting.rate.burst
        assert not (waiting.cordoned and started)
        for name, fractions in state.limits.items():
            of_class = [lease.job.requirements for lease in started if lease.job.priority_class == name]
            check_fractions(state, waiting, name, fractions=fractions, started=of_class, found=found)


@any_plan
@given(pools())
def test_nothing_gives_way_that_could_have_been_spared(state: PoolState) -> None:
    found = plan(state)
    gone = {each.run_id for each in found.preemptions}
    for unit in units(state.running):
        if gone.issuperset(each.run_id for each in unit):
            spared = gone - {each.run_id for each in unit}
            left = Left(state, found.leases, without=spared)
            assert not all(
                left.is_enough_on(each.node, asked=None) for each in unit if each.node in left.nodes
            )


@any_plan
@given(pools())
def test_what_gives_way_is_less_urgent_or_beyond_the_share_of_its_queue(state: PoolState) -> None:
    found = plan(state)
    leases = {lease.job.id: lease for lease in found.leases}
    runs = {each.run_id: each for each in state.running}
    shares = shares_of(state.queues, measure_of(state))
    for each in found.preemptions:
        victim, taker = runs[each.run_id], leases[each.for_job]
        lower, higher = CLASSES[victim.priority_class], CLASSES[taker.job.priority_class]
        if lower.priority < higher.priority or victim.gang_id:
            continue
        assert lower.preemptible and lower.priority == higher.priority
        assert victim.queue != taker.queue
        assert share_held(state, victim.queue) + added_share(state, found, victim.queue) > (
            state.protected_fraction * shares.get(victim.queue, 0.0)
        )
        assert share_held(state, taker.queue) - freed_share(state, found, taker.queue) < shares[taker.queue]


@any_plan
@given(pools())
def test_members_of_a_gang_give_way_together(state: PoolState) -> None:
    gone = {each.run_id for each in plan(state).preemptions}
    for unit in units(state.running):
        assert gone.intersection(each.run_id for each in unit) in (set(), {each.run_id for each in unit})


@any_plan
@given(plain_pools())
def test_no_queue_starts_a_job_while_one_further_below_its_share_has_one_that_fits(state: PoolState) -> None:
    found = plan(state)
    started: list[PlannedLease] = []
    for lease in found.leases:
        standings = {each.name: standing(state, each, started) for each in state.queues}
        for other in state.queues:
            if standings[other.name] < standings[lease.queue]:
                assert not any(fits(state, started, job) for job in rest(other, started))
        started.append(lease)


@any_plan
@given(plain_pools())
def test_within_a_queue_nothing_that_fits_is_passed_over(state: PoolState) -> None:
    started: list[PlannedLease] = []
    for lease in plan(state).leases:
        (own,) = [each for each in state.queues if each.name == lease.queue]
        ahead = [
            job for job in rest(own, started) if (job.priority, job.id) < (lease.job.priority, lease.job.id)
        ]
        assert not any(fits(state, started, job) for job in ahead)
        started.append(lease)


@any_plan
@given(plain_pools())
def test_whatever_is_left_waiting_has_a_reason_and_truly_fits_nowhere(state: PoolState) -> None:
    found = plan(state)
    for waiting in state.queues:
        for job in rest(waiting, found.leases):
            assert job.requirements.key in found.unplaced
            assert not fits(state, found.leases, job)


@any_plan
@given(pools())
def test_every_job_starts_or_has_a_reason(state: PoolState) -> None:
    found = plan(state)
    assume(not found.more)
    for waiting in state.queues:
        for job in rest(waiting, found.leases):
            assert found.why_waiting(
                queue=waiting.name,
                priority_class=job.priority_class,
                gang_id=job.gang.id if job.gang else "",
                key=job.requirements.key,
            )


@any_plan
@given(pools(), st.integers(0, 1_000))
def test_the_order_in_which_rows_were_read_does_not_matter(state: PoolState, seed: int) -> None:
    chance = Random(seed)  # noqa: S311  # nothing secret

    def shuffled[T](rows: Sequence[T]) -> list[T]:
        return chance.sample(rows, len(rows))

    again = replace(
        state,
        nodes=shuffled(state.nodes),
        running=shuffled(state.running),
        queues=shuffled([replace(each, jobs=shuffled(each.jobs)) for each in state.queues]),
    )
    assert plan(again).leases == plan(state).leases
    assert plan(again).unplaced == plan(state).unplaced
    assert sorted(each.run_id for each in plan(again).preemptions) == sorted(
        each.run_id for each in plan(state).preemptions
    )


# What is checked against, worked out the slow way.


class Left:
    """What is left of each node after so many leases, without some of the runs."""

    def __init__(
        self, state: PoolState, leases: Iterable[PlannedLease], *, without: Iterable[str] = ()
    ) -> None:
        gone = set(without)
        self.nodes = {each.capacity.name: Counter[str]() for each in state.nodes}
        for each in state.nodes:
            self.nodes[each.capacity.name].update(held(each.capacity))
            self.nodes[each.capacity.name].subtract(held(each.used))
        for run in state.running:
            if run.run_id in gone and run.node in self.nodes:
                self.nodes[run.node].update(held(run.used))
        for lease in leases:
            self.nodes[lease.node.name].subtract(asked_by(lease.job.requirements))

    def is_enough_on(self, name: str, *, asked: Requirements | None) -> bool:
        """Nothing is missing, of what is asked or of anything."""
        wanted = asked_by(asked) if asked else Counter(dict.fromkeys(RESOURCES, 1))
        return all(self.nodes[name][resource] >= 0 for resource, amount in wanted.items() if amount)


def held(amounts: Use | NodeCapacity) -> Counter[str]:
    return Counter(
        cpu=amounts.cpu_millicores, memory=amounts.memory_bytes, gpu=amounts.resources.get("gpu", 0)
    )


def asked_by(wanted: Requirements) -> Counter[str]:
    return Counter({**dict(wanted.resources), "cpu": wanted.cpu_millicores, "memory": wanted.memory_bytes})


def fits(state: PoolState, leases: Iterable[PlannedLease], job: QueuedJob) -> bool:
    """Whether some node has the room and takes it."""
    left = Left(state, leases)
    return any(
        each.capacity.schedulable
        and barred(job.requirements, each.capacity, node_id_label=HOSTNAME) is None
        and all(
            amount <= left.nodes[each.capacity.name][name]
            for name, amount in asked_by(job.requirements).items()
            if amount
        )
        for each in state.nodes
    )


def rest(waiting: QueueState, leases: Iterable[PlannedLease]) -> list[QueuedJob]:
    started = {lease.job.id for lease in leases}
    return [job for job in waiting.jobs if job.id not in started]


def by_gang(jobs: Iterable[QueuedJob]) -> dict[Gang, list[str]]:
    found: dict[Gang, list[str]] = defaultdict(list)
    for job in jobs:
        if job.gang:
            found[job.gang].append(job.id)
    return found


def units(running: Iterable[RunningJob]) -> list[list[RunningJob]]:
    """Runs that give way together."""
    found: dict[tuple[str, str], list[RunningJob]] = defaultdict(list)
    for each in running:
        found[each.queue, each.gang_id or each.run_id].append(each)
    return list(found.values())


def measure_of(state: PoolState) -> Measure:
    return Measure((each.capacity for each in state.nodes), shared=state.fair_share_resources)


def share_of(state: PoolState, amounts: Iterable[Counter[str]]) -> float:
    total, capacity = Counter[str](), Counter[str]()
    for each in amounts:
        total.update(each)
    for each_node in state.nodes:
        capacity.update(held(each_node.capacity))
    return max(
        (total[name] / capacity[name] for name in state.fair_share_resources if capacity[name]), default=0.0
    )


def share_held(state: PoolState, name: str) -> float:
    return share_of(state, [held(each.used) for each in state.queues if each.name == name])


def added_share(state: PoolState, found: Plan, name: str) -> float:
    return share_of(
        state, [asked_by(lease.job.requirements) for lease in found.leases if lease.queue == name]
    )


def freed_share(state: PoolState, found: Plan, name: str) -> float:
    gone = {each.run_id for each in found.preemptions if each.queue == name}
    return share_of(state, [held(each.used) for each in state.running if each.run_id in gone])


def standing(state: PoolState, waiting: QueueState, started: Iterable[PlannedLease]) -> float:
    own = [asked_by(lease.job.requirements) for lease in started if lease.queue == waiting.name]
    return share_of(state, [held(waiting.used), *own]) * waiting.priority_factor


def check_fractions(
    state: PoolState,
    waiting: QueueState,
    name: str,
    *,
    fractions: Mapping[str, float],
    started: Sequence[Requirements],
    found: Plan,
) -> None:
    gone = {each.run_id for each in found.preemptions}
    total = Counter[str]()
    for each in state.nodes:
        total.update(held(each.capacity))
    now = Counter[str]()
    for run in state.running:
        if run.queue == waiting.name and run.priority_class == name and run.run_id not in gone:
            now.update(held(run.used))
    more = Counter[str]()
    for wanted in started:
        more.update(asked_by(wanted))
    for resource, fraction in fractions.items():
        assert not more[resource] or now[resource] + more[resource] <= fraction * total[resource]
