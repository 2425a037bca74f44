"""Pages joined by their cursors are the list: with ties, rows without a value, two keys, and rows that come and go."""

from collections.abc import Callable
from datetime import timedelta
from itertools import cycle
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import Invalid
from scheduler.filters import JobFilter, Order, job_filter_of, order_of, run_filter_of
from scheduler.filters.orders import NEWEST_JOBS, SORTS
from scheduler.filters.reading import FilterInvalid
from scheduler.models import Job, Run
from scheduler.models.clock import database_now
from scheduler.queries import job_sets
from scheduler.queries.counting import total_of
from scheduler.queries.keyset import Listing
from scheduler.queries.listings import find_jobs, list_decisions, list_jobs, list_runs
from scheduler.queries.newer import above
from scheduler.states import JobState, RunState
from tests.factories import make_executor, make_job, make_queue, make_run
from tests.fuzz.effort import tried, undone

pytestmark = pytest.mark.django_db

JOB_ORDERS = st.lists(st.sampled_from(SORTS["jobs"]), min_size=1, max_size=2, unique=True)
RUN_ORDERS = st.lists(st.sampled_from(SORTS["runs"]), min_size=1, max_size=2, unique=True)


def _signed(names: list[str], signs: list[bool]) -> str:
    return ",".join(f"{'-' * sign}{name}" for name, sign in zip(names, signs, strict=False))


@pytest.fixture
def jobs() -> list[Job]:
    """Jobs with many ties, half of them without an end, some without memory."""
    now = database_now()
    for name in ("a", "B", "c"):
        make_queue(name)
    return [
        make_job(
            ("a", "B", "c")[number % 3],
            job_set=("x", "Y")[number % 2],
            owner=("alice", "bob")[number % 2],
            priority=number % 2,
            memory_bytes=None if number % 4 == 0 else number % 3,
            state=JobState.QUEUED if number % 2 else JobState.FAILED,
            submitted_at=now - timedelta(seconds=number // 3),
        )
        for number in range(17)
    ]


@pytest.fixture
def runs() -> list[Run]:
    """Runs with many ties, some of which never started or have no exit code."""
    executors = [make_executor(name, nodes=0) for name in ("one", "two")]
    states = (RunState.FAILED, RunState.LEASE_RETURNED, RunState.SUCCEEDED)
    job = make_job()
    return [
        make_run(job, executor=executors[number % 2], state=states[number % 3], core_seconds=number % 2)
        for number in range(13)
    ]


def joined[R: Any](
    listing: Callable[[], Listing[R]], *, limit: int, meanwhile: Callable[[], object] = lambda: None
) -> list[str]:
    """The keys of all rows, page by page, with something done between."""
    found: list[str] = []
    cursor = ""
    while True:
        rows, cursor = listing().page(limit=limit, cursor=cursor)
        found += [str(row.pk) for row in rows]
        if not cursor:
            return found
        meanwhile()


def whole[R: Any](listing: Listing[R]) -> list[str]:
    return [str(row.pk) for row in listing.page(limit=1_000)[0]]


def _is_in_order(values: list[Any], *, descending: bool) -> bool:
    """In the order of one key: without a value last, whichever the way."""
    there = [value for value in values if value is not None]
    known = values[: len(there)] == there
    return known and there == sorted(there, reverse=descending)


def test_pages_of_jobs_joined_are_the_list(jobs: list[Job]) -> None:
    @tried(40)
    @given(names=JOB_ORDERS, signs=st.lists(st.booleans(), min_size=2, max_size=2), limit=st.integers(1, 7))
    def holds(names: list[str], signs: list[bool], limit: int) -> None:
        order = order_of(_signed(names, signs), "jobs", NEWEST_JOBS)
        everything = whole(list_jobs(JobFilter(), order))
        assert sorted(everything) == sorted(job.id for job in jobs)
        assert joined(lambda: list_jobs(JobFilter(), order), limit=limit) == everything

    holds()


@pytest.mark.parametrize("looked_at", [0, 10_000])
@pytest.mark.parametrize("few", [1, 100])
@pytest.mark.parametrize(
    "asked",
    ["jobSet^=x", "jobSet=x&jobSet=Y", "jobSet*=Y&queue=a&queue=c", "jobSet=x&owner!=alice", "jobSet=none", "jobSet!=x",
     "activeJobSet=yes&queue!=a", "activeJobSet=yes&jobSet=Y&state=failed", "activeJobSet=no", "queue=a"],
)  # fmt: skip
def test_lists_of_job_sets_have_what_is_meant_in_its_order(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch, asked: str, few: int, looked_at: int
) -> None:
    monkeypatch.setattr(job_sets, "FEW", few)
    monkeypatch.setattr(job_sets, "MOST_LOOKED_AT", looked_at)
    wanted = job_filter_of(asked)
    meant = list(find_jobs(wanted).order_by("-submitted_at", "-id"))
    listing = list_jobs(wanted)
    assert joined(lambda: list_jobs(wanted), limit=2) == [job.id for job in meant]
    assert listing.stretch(skip=1, take=2) == meant[1:3]
    if meant:
        place = listing.place_of(listing.page(limit=50)[0][-1])
        assert listing.count_above(place, most=50) == len(meant) - 1
        assert listing.nearest_above(place, limit=1) == [(job.submitted_at, job.id) for job in meant[-2:-1]]


def test_what_has_not_ended_has_no_place_among_what_has(jobs: list[Job]) -> None:
    queued, failed = jobs[1], jobs[0]
    for asked, there in (("state=failed", False), ("queue=a&queue=B", True)):
        listing = list_jobs(job_filter_of(asked), order_of("finished", "jobs", NEWEST_JOBS))
        assert listing.find(failed.id) == (failed.ended_at, failed.id)
        assert (listing.find(queued.id) is not None) == there


def test_pages_of_runs_joined_are_the_list(runs: list[Run]) -> None:
    @tried(40)
    @given(
        names=RUN_ORDERS,
        signs=st.lists(st.booleans(), min_size=2, max_size=2),
        limit=st.integers(1, 7),
        states=st.sampled_from([(), (RunState.FAILED, RunState.SUCCEEDED)]),
    )
    def holds(names: list[str], signs: list[bool], limit: int, states: tuple[RunState, ...]) -> None:
        order = order_of(_signed(names, signs), "runs", NEWEST_JOBS)
        wanted = run_filter_of("&".join(f"state={state}" for state in states))
        everything = whole(list_runs(wanted, order))
        assert sorted(everything) == sorted(str(run.id) for run in runs if not states or run.state in states)
        assert joined(lambda: list_runs(wanted, order), limit=limit) == everything

    holds()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("name", "value"),
    [("finished", lambda job: job.ended_at), ("priority", lambda job: job.priority),
     ("submitted", lambda job: job.submitted_at), ("memory", lambda job: job.memory_limit_bytes or 0)],
)  # fmt: skip
def test_a_list_is_in_its_order_and_what_has_no_value_comes_last(
    jobs: list[Job], name: str, value: Callable[[Job], Any], descending: bool
) -> None:
    found, _ = list_jobs(JobFilter(), order_of(_signed([name], [descending]), "jobs", NEWEST_JOBS)).page(
        limit=50
    )
    assert len(found) == len(jobs)
    assert _is_in_order([value(job) for job in found], descending=descending)


def test_what_comes_and_goes_meanwhile_neither_repeats_nor_hides_what_stays(jobs: list[Job]) -> None:
    stays = {job.id for job in jobs[::2]}

    @tried(25)
    @given(
        coins=st.lists(st.tuples(st.booleans(), st.integers(0, 16)), min_size=30, max_size=30),
        names=JOB_ORDERS,
        signs=st.lists(st.booleans(), min_size=2, max_size=2),
    )
    def holds(coins: list[tuple[bool, int]], names: list[str], signs: list[bool]) -> None:
        order = order_of(_signed(names, signs), "jobs", NEWEST_JOBS)
        tossed = cycle(coins)
        leaving = [job.id for job in jobs[1::2]]

        def meanwhile() -> None:
            goes, number = next(tossed)
            if leaving and goes:
                Job.objects.filter(id=leaving.pop()).delete()
            else:
                state = (JobState.QUEUED, JobState.FAILED)[number % 2]
                make_job("a", state=state, submitted_at=jobs[number].submitted_at)

        with undone():
            found = joined(lambda: list_jobs(JobFilter(), order), limit=3, meanwhile=meanwhile)
        assert len(found) == len(set(found))
        assert stays <= set(found)
        assert [each for each in found if each in stays] == [
            each for each in whole(list_jobs(JobFilter(), order)) if each in stays
        ]

    holds()


@pytest.mark.parametrize(
    ("asked", "sort"),
    [
        ("queue=a", ""),
        ("", "queue"),
        ("", "-submitted,queue"),
        ("queue=B", "submitted"),
        ("state=failed", "id"),
    ],
)
def test_a_cursor_belongs_to_its_question(jobs: list[Job], asked: str, sort: str) -> None:
    cursor = list_jobs(JobFilter()).page(limit=2)[1]
    with pytest.raises(Invalid, match="not one that Tack gave out for this question"):
        list_jobs(job_filter_of(asked), order_of(sort, "jobs", NEWEST_JOBS)).page(limit=2, cursor=cursor)
    with pytest.raises(Invalid, match="for this question"):
        list_runs(run_filter_of("")).page(limit=2, cursor=cursor)


def test_a_cursor_goes_on_in_another_size_and_with_the_same_question_in_another_order(
    jobs: list[Job],
) -> None:
    first, cursor = list_jobs(job_filter_of("queue=a&owner=alice")).page(limit=1)
    rest, _ = list_jobs(job_filter_of("owner=alice&queue=a")).page(limit=50, cursor=cursor)
    assert [*first, *rest] == list_jobs(job_filter_of("queue=a&owner=alice")).page(limit=50)[0]


def test_a_cursor_that_was_tampered_with_is_refused(jobs: list[Job]) -> None:
    cursor = list_jobs(JobFilter()).page(limit=2)[1]
    for place in range(0, len(cursor) - 1, 7):
        other = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        with pytest.raises(Invalid, match="cursor"):
            list_jobs(JobFilter()).page(limit=2, cursor=other)


@tried(50)
@given(cursor=st.text(max_size=80) | st.binary(max_size=40).map(lambda sent: sent.hex()))
def test_a_cursor_that_was_never_given_out_is_refused(cursor: str) -> None:
    if cursor:
        with pytest.raises(Invalid, match="cursor"):
            list_decisions(run_filter_of("")).page(limit=2, cursor=cursor)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sort", ["colour", "queue,", "queue,queue", "queue,-queue", "queue,state,owner", "--queue", "\x00"]
)
def test_an_order_that_makes_no_sense_is_told_what_there_is(sort: str) -> None:
    with pytest.raises(FilterInvalid, match="sort takes"):
        order_of(sort, "jobs", NEWEST_JOBS)


def test_what_is_above_a_row_is_the_list_before_it(jobs: list[Job]) -> None:
    @tried(40)
    @given(
        names=JOB_ORDERS,
        signs=st.lists(st.booleans(), min_size=2, max_size=2),
        at=st.integers(0, 16),
        size=st.integers(1, 5),
    )
    def holds(names: list[str], signs: list[bool], at: int, size: int) -> None:
        order: Order = order_of(_signed(names, signs), "jobs", NEWEST_JOBS)
        listing = list_jobs(JobFilter(), order)
        everything, _ = listing.page(limit=50)
        place = listing.place_of(everything[at])
        assert listing.find(everything[at].id) == place
        assert listing.count_above(place, most=100) == at
        found = above(listing, place, limit=size)
        assert found.count == at
        if found.at_row:
            assert listing.page(limit=1, cursor=found.at_row)[0] == [everything[at]]
        before = listing.page(limit=size, cursor=found.page_before)[0]
        assert before == everything[at - size : at] if found.page_before else at <= size

    holds()


def test_a_page_takes_one_query_wherever_it_is(jobs: list[Job]) -> None:
    listing = list_jobs(job_filter_of("category.any!=oom"), order_of("finished,-queue", "jobs", NEWEST_JOBS))
    cursor = listing.page(limit=8)[1]
    with CaptureQueriesContext(connection) as captured:
        listing.page(limit=8, cursor=cursor)
    assert len(captured) == 1


def test_there_are_exactly_so_many_up_to_a_bound_and_about_so_many_beyond(jobs: list[Job]) -> None:
    every = find_jobs(JobFilter())
    assert (total_of(every).count, total_of(every).is_exact) == (17, True)
    assert total_of(every, bound=17).is_exact
    beyond = total_of(every, bound=5)
    assert (beyond.count > 5, beyond.is_exact) == (True, False)
    assert total_of(find_jobs(job_filter_of("queue=none"))).count == 0
