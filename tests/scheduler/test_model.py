"""Whatever happens in whatever order, what must hold holds: random walks through a small Tack, step by step."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from django.db import connection

from scheduler.models import Event, Job, JobSet
from scheduler.queries.events import JobSetEvent, events_after
from scheduler.queries.unsettled import any_unsettled
from scheduler.states import EventKind, JobState
from tests.fuzz.effort import TIMES
from tests.scheduler.invariants import check_all
from tests.scheduler.world import JOB_SETS, QUEUES, World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180 * TIMES)]

STEPS = 60
"""Of one walk. TACK_FUZZ says how many times the usual number of walks is made."""


@dataclass
class Follower:
    """Reads a job set from some point on, a few events at a time, as a client does."""

    queue: str
    job_set: str
    start: int
    read: list[JobSetEvent] = field(default_factory=list)

    def look(self, limit: int) -> bool:
        """Read on; whether there was anything."""
        after = self.read[-1].id if self.read else self.start
        page = events_after(self.queue, self.job_set, after, limit)
        assert [event.id for event in page.events] == list(range(after + 1, after + 1 + len(page.events)))
        self.read += page.events
        return bool(page.events)

    def check(self) -> None:
        """It has seen everything from its start on, as it is there now."""
        while self.look(1_000):
            pass
        assert tuple(self.read) == events_after(self.queue, self.job_set, self.start, 10_000).events


def followers(chance: random.Random) -> list[Follower]:
    """One of every job set from the beginning, and one from wherever it is now."""
    starts = dict(JobSet.objects.values_list("id", "last_event"))
    named = {(each.queue_id, each.name): starts[each.id] for each in JobSet.objects.all()}
    made = [Follower(queue, job_set, 0) for queue in QUEUES for job_set in JOB_SETS]
    return made + [Follower(*name, chance.randint(0, last)) for name, last in named.items()]


@contextmanager
def told_of(world: World, seed: int) -> Iterator[None]:
    """A failure says how to come there again."""
    try:
        yield
    except Exception as error:
        error.add_note(f"seed {seed}, after {len(world.did)} steps: {', '.join(world.did)}")
        raise


@pytest.mark.parametrize("turn", range(4 * TIMES))
def test_what_must_hold_holds_after_every_step(turn: int) -> None:
    World.furnish()
    seed = seed_of(turn)
    world = world_of(seed)
    readers = followers(world.chance)
    with told_of(world, seed):
        for step in range(STEPS):
            world.act()
            check_all()
            world.chance.choice(readers).look(world.chance.randint(1, 20))
            if step % 20 == 0:
                readers += followers(world.chance)
        world.come_to_rest()
        check_all()
        for reader in readers:
            reader.check()
    assert not any_unsettled()
    assert Job.objects.filter(state__in=[JobState.RUNNING, JobState.LEASED, JobState.PENDING]).count() == 0


def test_the_walks_come_by_everything_that_clients_can_be_told() -> None:
    World.furnish()
    world, told = world_of(7), set[str]()
    while told != set(EventKind):
        assert len(world.did) < 40 * STEPS, set(EventKind) - told
        for _ in range(STEPS // 2):
            world.act()
        told = set(Event.objects.values_list("kind", flat=True).distinct())
    check_all()


class AtOnce:
    """Several who do as they please, each in a thread with a connection of its own, until all have ended."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self._faults: list[Exception] = []
        self._acting: list[threading.Thread] = []
        self._watching: list[threading.Thread] = []

    def act(self, work: Callable[[], None]) -> None:
        """Do this once."""
        self._acting.append(threading.Thread(target=self._guarded, args=(work,)))

    def watch(self, work: Callable[[], object]) -> None:
        """Do this again and again, as long as the others act."""

        def again() -> None:
            while not self.over.is_set():
                work()

        self._watching.append(threading.Thread(target=self._guarded, args=(again,)))

    def run(self) -> None:
        """Let them; raises what the first of them raised."""
        for thread in (*self._acting, *self._watching):
            thread.start()
        for thread in self._acting:
            thread.join()
        self.over.set()
        for thread in self._watching:
            thread.join()
        if self._faults:
            raise self._faults[0]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told by the test, not by a thread
            self._faults.append(error)
        finally:
            connection.close()


@pytest.mark.parametrize("turn", range(TIMES))
def test_what_must_hold_holds_after_several_did_as_they_pleased_at_once(turn: int) -> None:
    World.furnish()
    seed = seed_of(turn) + 1_000
    worlds = [world_of(seed + number) for number in range(3)]
    readers = followers(worlds[0].chance)
    at_once = AtOnce()
    for world in worlds:
        at_once.act(partial(walk, world, seed))
    at_once.watch(lambda: [reader.look(50) for reader in readers])
    at_once.run()
    check_all()
    worlds[0].come_to_rest()
    check_all()
    for reader in readers:
        reader.check()


def world_of(seed: int) -> World:
    return World(random.Random(seed))  # noqa: S311 - the same for everybody


def seed_of(turn: int) -> int:
    """In a usual run the same for everybody; by hand another each time."""
    return turn if TIMES == 1 else random.SystemRandom().getrandbits(32)


def walk(world: World, seed: int) -> None:
    with told_of(world, seed):
        for _ in range(STEPS):
            world.act()
