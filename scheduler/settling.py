"""Settle runs that ended badly: decide, mutate, requeue or fail. Once per run, however many workers try.

Runs whose settlement depends on equal facts are settled together: in a storm that is nearly all of them.
"""

import logging
import time
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from django.db import transaction

from scheduler.config import Configuration
from scheduler.metrics import Count, counts_of, settle_time
from scheduler.models import Counter, Decision, Event, Job, Run
from scheduler.models.clock import database_now
from scheduler.models.events import NewEvent
from scheduler.models.settlements import Unsettled, decision_of, event_of, outcome_of
from scheduler.placement import Requirements, reserved_memory
from scheduler.queries.schedulability import Answer, FleetCheck
from scheduler.queries.unsettled import case_of, governing_policies, unsettled_runs
from scheduler.settlement import (
    Settlement,
    settle,
    without_room_to_grow,
    without_untried_node,
)

BATCH = 2_000
"""Jobs settled in one transaction at most: a third of a second where nothing else goes on."""
TRIES = 3
"""How often a run that cannot be settled is tried before it is set aside."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What a batch came to."""

    runs: int
    requeued: int
    more: bool
    """There may be runs left to settle."""
    storms_elsewhere: bool = False
    """It was a small batch for the sake of quiet queues, while many runs of others wait."""


@dataclass(kw_only=True, slots=True)
class _Alike:
    """Runs of equal facts, and what follows for each of them."""

    settlement: Settlement
    queue: str
    runs: Sequence[Unsettled]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Means:
    """What every batch goes by."""

    config: Configuration
    fleet: FleetCheck


@dataclass(frozen=True, kw_only=True, slots=True)
class _Check:
    """A question to the fleet: who asks it, and what becomes of those that would fit nowhere."""

    asks: Callable[[Settlement], bool]
    avoiding: bool
    refuse: Callable[[Settlement], Settlement]


@transaction.atomic
def settle_runs(*, config: Configuration, limit: int = BATCH, fleet: FleetCheck | None = None) -> Settled:
    """Settle ended runs that await it. Settling twice changes nothing: a decision's key is its run.

    A run that cannot be settled is tried three times, then set aside with its error; it never holds up
    the others of its batch. One of which the fleet could not say whether its job fits is left for the next
    time. `fleet` is what earlier batches knew of the fleet.
    """
    started = time.monotonic()
    claim = Job.objects.claim_unsettled(limit)  # locks them; what another worker holds is skipped
    batch = _settle_or_halve(claim.jobs, _Means(config=config, fleet=fleet or FleetCheck()))
    runs = sum(len(alike.runs) for alike in batch)
    if batch:
        # After the events: these rows are wanted by every worker, and whoever comes last holds them shortest.
        seconds = settle_time(time.monotonic() - started)
        Counter.objects.add({**_counts(batch), **seconds}, reset_every_seconds=config.metrics_reset_seconds)
    return Settled(
        runs=runs,
        requeued=sum(len(alike.runs) for alike in batch if alike.settlement.requeues),
        more=claim.more and runs > 0,
        storms_elsewhere=claim.storms_elsewhere,
    )


_SEAT = attrgetter("pool", "executor", "node")


def _counts(batch: Iterable[_Alike]) -> Mapping[Count, float]:
    found: dict[Count, float] = defaultdict(float)
    for alike in batch:
        seats = Tally(map(_SEAT, alike.runs))
        for count, runs in counts_of(alike.settlement, queue=alike.queue, seats=seats):
            found[count] += runs
    return found


def _settle_or_halve(jobs: Sequence[str], means: _Means) -> list[_Alike]:
    """Settle the runs of locked jobs; where that fails as a whole, find the ones to blame by halving."""
    if not jobs:
        return []
    try:
        with transaction.atomic():
            return _settle_batch(jobs, means)
    except Exception as error:  # noqa: BLE001 - whatever the rows of one job do to us, the others go on
        if len(jobs) == 1:
            _note_trouble([run for runs in unsettled_runs(jobs).values() for run in runs], error)
            return []
        middle = len(jobs) // 2
        return _settle_or_halve(jobs[:middle], means) + _settle_or_halve(jobs[middle:], means)


def _settle_batch(jobs: Sequence[str], means: _Means) -> list[_Alike]:
    batch = _what_fits(_decide(jobs, means.config), means)
    if not batch:
        return []
    now = database_now()
    Decision.objects.record(_decisions(batch), now)
    Run.objects.settle([_settled(alike) for alike in batch], now)
    Job.objects.carry_out([(outcome_of(alike.settlement), _jobs(alike)) for alike in batch], now)
    Event.objects.append(_events(batch, now))  # last: it takes the numbers of the job sets
    return batch


def _decide(jobs: Sequence[str], config: Configuration) -> list[_Alike]:
    unsettled = unsettled_runs(jobs)
    governing = governing_policies({facts.queue for facts in unsettled}, config=config)
    batch = []
    for facts, runs in unsettled.items():
        try:
            settlement = settle(case_of(facts, governing[facts.queue], config=config), config=config)
        except Exception as error:  # noqa: BLE001 - whatever one run's data does to us, the others go on
            _note_trouble(runs, error)
            continue
        batch.append(_Alike(settlement=settlement, queue=facts.queue, runs=runs))
    return batch


def _note_trouble(runs: Iterable[Unsettled], error: Exception) -> None:
    """Count the try; after the last, set the run aside for an operator. Twice in one claim is one try."""
    for run in runs:
        tries = run.tries + 1
        log.error("run %s could not be settled (try %s of %s): %s", run.run_id, tries, TRIES, error)
        settle_error = f"{type(error).__name__}: {error}"[:2_000] if tries >= TRIES else ""
        Run.objects.filter(id=run.run_id).update(settle_tries=tries, settle_error=settle_error)


_CHECKS = (
    _Check(asks=lambda each: each.grows, avoiding=False, refuse=without_room_to_grow),
    _Check(asks=lambda each: each.avoids_more, avoiding=True, refuse=without_untried_node),
)


def _what_fits(batch: list[_Alike], means: _Means) -> list[_Alike]:
    """Ask the fleet at most twice for the whole batch: about grown jobs, then about those that also avoid nodes.

    Where it cannot tell, the runs stay as they are: an error decides nothing.
    """
    for check in _CHECKS:
        asking = [alike for alike in batch if check.asks(alike.settlement)]
        if asking:
            unknown = _asked(check, asking, means)
            batch = [alike for alike in batch if id(alike) not in unknown]
    return batch


def _asked(check: _Check, asking: Sequence[_Alike], means: _Means) -> set[int]:
    """Refuse what would fit nowhere; returns those of which nothing could be learned, by identity."""
    wanted = [_requirements(alike.settlement, avoiding=check.avoiding) for alike in asking]
    answers = means.fleet.ask(wanted, config=means.config)
    unknown = set()
    for alike, requirements in zip(asking, wanted, strict=True):
        match answers[requirements]:
            case Answer.ERROR:
                unknown.add(id(alike))
            case Answer.NO_FIT | Answer.NO_ANSWER:
                alike.settlement = check.refuse(alike.settlement)
    return unknown


def _requirements(settlement: Settlement, *, avoiding: bool) -> Requirements:
    case, growth = settlement.case, settlement.growth
    request = growth.request_bytes if growth else case.memory_request_bytes
    limit = growth.limit_bytes if growth else case.memory_limit_bytes
    avoided = settlement.avoided_nodes if avoiding else case.avoided_nodes
    return replace(
        Requirements.of(case),
        memory_bytes=reserved_memory(request=request, limit=limit),
        avoided_nodes=tuple(sorted(avoided)),
    )


def _jobs(alike: _Alike) -> list[str]:
    return [run.job_id for run in alike.runs]


def _settled(alike: _Alike) -> tuple[bool | None, str, list[str]]:
    """Whether the runs are retryable, why no policy decided about them, and which they are."""
    settlement = alike.settlement
    retryable = settlement.requeues if settlement.is_failure else None
    return retryable, settlement.undecided_because or "", [run.run_id for run in alike.runs]


def _decisions(batch: Iterable[_Alike]) -> list[tuple[Decision, list[tuple[str, str]]]]:
    return [
        (decision_of(alike.settlement), [(run.run_id, run.job_id) for run in alike.runs])
        for alike in batch
        if alike.settlement.decision is not None
    ]


def _events(batch: Iterable[_Alike], now: datetime) -> list[NewEvent]:
    """What clients hear. A lease that merely came back and is given out again says nothing more."""
    return [
        event_of(alike.settlement, run, now)
        for alike in batch
        if alike.settlement.decision is not None or not alike.settlement.requeues
        for run in alike.runs
    ]
