"""Totals: added up by many, told as one, begun anew by the clock."""

from datetime import timedelta

import pytest

from scheduler.metrics import Count, Metric, round_time, settle_time
from scheduler.models import Counter
from scheduler.models.clock import database_now

pytestmark = pytest.mark.django_db

HALF_A_DAY = 43_200.0
RETRIES = Count(Metric.DECISIONS, ("nightly", "default", "oom-grow", "retry"))
REFUSALS = Count(Metric.DECISIONS, ("nightly", "default", "oom-grow", "fail_rule"))
SKIPS = Count(Metric.GANG_SKIPS, ("oom-grow",))


def add(amounts: dict[Count, float], reset_every_seconds: float = HALF_A_DAY) -> None:
    Counter.objects.add(amounts, reset_every_seconds=reset_every_seconds)


def totals(reset_every_seconds: float = HALF_A_DAY) -> dict[Count, float]:
    return dict(Counter.objects.totals(reset_every_seconds=reset_every_seconds))


def let_a_period_pass() -> None:
    Counter.objects.exclude(period=None).update(period=database_now() - timedelta(seconds=HALF_A_DAY + 1))


def test_amounts_are_added_to_what_is_there() -> None:
    add({RETRIES: 2, REFUSALS: 1})
    add({RETRIES: 3})
    assert totals() == {RETRIES: 5, REFUSALS: 1}


def test_the_shares_of_several_sessions_are_one_total() -> None:
    add({RETRIES: 2})
    share = Counter.objects.get()
    Counter.objects.create(
        metric=share.metric, labels=share.labels, shard=(share.shard + 1) % 8, period=share.period, total=40
    )
    assert totals() == {RETRIES: 42}


def test_a_new_period_begins_at_nothing() -> None:
    add({RETRIES: 5})
    let_a_period_pass()
    assert totals() == {}
    add({RETRIES: 1})
    assert totals() == {RETRIES: 1}


def test_a_late_count_joins_the_period_that_has_begun() -> None:
    add({RETRIES: 5})
    Counter.objects.update(period=database_now() + timedelta(hours=1))
    add({RETRIES: 1})
    assert totals() == {RETRIES: 6}


def test_skipped_gangs_and_times_are_never_reset() -> None:
    add({SKIPS: 4, **settle_time(0.3)})
    let_a_period_pass()
    add({SKIPS: 1})
    assert totals()[SKIPS] == 5
    assert totals()[Count(Metric.SETTLE_SECONDS)] == 0.3


def test_without_an_interval_totals_go_on_for_ever() -> None:
    add({RETRIES: 5}, 0.0)
    let_a_period_pass()
    add({RETRIES: 1}, 0.0)
    assert totals(0.0) == {RETRIES: 6}


def test_another_interval_loses_no_running_total_to_a_mistake() -> None:
    add({RETRIES: 5})
    add({RETRIES: 1}, 0.0)
    assert totals(0.0) == {RETRIES: 6}


def test_what_is_past_is_deleted_and_what_runs_is_kept() -> None:
    add({RETRIES: 5, SKIPS: 1})
    let_a_period_pass()
    add({REFUSALS: 1})
    Counter.objects.forget(reset_every_seconds=HALF_A_DAY)
    assert {tuple(row.labels) for row in Counter.objects.all()} == {SKIPS.labels, REFUSALS.labels}


def test_times_fall_into_the_first_class_that_holds_them() -> None:
    assert settle_time(0.3) == {
        Count(Metric.SETTLE_TIMES, ("0.5",)): 1,
        Count(Metric.SETTLE_SECONDS): 0.3,
    }
    assert Count(Metric.ROUND_TIMES, ("default", "+Inf")) in round_time("default", 60.0)


def test_nothing_to_add_asks_the_database_nothing(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        add({})
