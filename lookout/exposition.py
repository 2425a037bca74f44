"""Measurements in the words of Prometheus: the names of the model, under our prefix."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from scheduler.metrics import BEYOND, BUCKETS, LABELS, Count, Metric
from scheduler.queries.measurements import Measurements

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

type Totals = Sequence[tuple[tuple[str, ...], float]]
"""Values of labels with a total."""

_COUNTERS = {
    Metric.DECISIONS: (
        "tack_scheduler_retry_policy_decisions",
        "Failures that a retry policy decided about, by its verdict. Begins anew at every reset.",
    ),
    Metric.GANG_SKIPS: (
        "tack_scheduler_retry_policy_gang_skipped",
        "Failures of gang members, which no policy decides about, by the policy that would have.",
    ),
    Metric.REMOVED: (
        "tack_scheduler_retention_removed",
        "What was removed since it was older than retention says.",
    ),
}
# The model's names for these do not end in _total, which its library allows for a counter and ours does not: hence
# without a type. They count nevertheless.
_UNTYPED = {
    Metric.FAILURES_BY_QUEUE: (
        "tack_scheduler_job_error_classification_by_queue",
        "Counter of failed runs by queue and category, retried or not. Begins anew at every reset.",
    ),
    Metric.FAILURES_BY_NODE: (
        "tack_scheduler_job_error_classification_by_node",
        "Counter of failed runs by node and category, retried or not. Begins anew at every reset.",
    ),
}
_TIMES = {
    Metric.SETTLE_TIMES: (
        Metric.SETTLE_SECONDS,
        "tack_scheduler_settle_seconds",
        "Time of a batch of settling, from the claim until its rows and events are written.",
    ),
    Metric.ROUND_TIMES: (
        Metric.ROUND_SECONDS,
        "tack_scheduler_round_seconds",
        "Time of a scheduling round that changed something, from its snapshot until its rows are written.",
    ),
}


def exposition(measured: Measurements) -> bytes:
    """The text that Prometheus reads."""
    return generate_latest(_Measured(measured))


@dataclass(frozen=True)
class _Measured(Collector):
    """What was measured, as families of samples."""

    measured: Measurements

    def collect(self) -> Iterator[Family]:
        totals = _by_metric(self.measured.totals)
        for metric, (name, text) in _COUNTERS.items():
            counter = CounterMetricFamily(name, text, labels=LABELS[metric])
            yield _filled(counter, totals[metric])
        for metric, (name, text) in _UNTYPED.items():
            yield _filled(UnknownMetricFamily(name, text, labels=LABELS[metric]), totals[metric])
        for metric, (sums, name, text) in _TIMES.items():
            yield _histogram(name, text, LABELS[sums], totals[metric], dict(totals[sums]))
        yield from self._gauges()

    def _gauges(self) -> Iterator[Family]:
        yield GaugeMetricFamily(
            "tack_scheduler_runs_awaiting_decision",
            "Runs that ended and are not settled yet.",
            value=self.measured.runs_awaiting_decision,
        )
        yield GaugeMetricFamily(
            "tack_scheduler_oldest_run_awaiting_decision_seconds",
            "Time since the oldest of them ended; 0 where none waits.",
            value=self.measured.oldest_seconds,
        )
        ages = GaugeMetricFamily(
            "tack_scheduler_executor_heartbeat_age_seconds",
            "Time since the executor was heard of last.",
            labels=("cluster", "pool"),
        )
        heard = [((each.executor, each.pool), each.age_seconds) for each in self.measured.heartbeats]
        yield _filled(ages, heard)


def _by_metric(totals: Iterable[tuple[Count, float]]) -> Mapping[Metric, Totals]:
    found: dict[Metric, list[tuple[tuple[str, ...], float]]] = defaultdict(list)
    for count, total in totals:
        found[count.metric].append((count.labels, total))
    return found


def _filled[Filled: CounterMetricFamily | UnknownMetricFamily | GaugeMetricFamily](
    family: Filled, totals: Totals
) -> Filled:
    for labels, total in totals:
        family.add_metric(labels, total)
    return family


def _histogram(
    name: str, text: str, labels: Sequence[str], classes: Totals, sums: Mapping[tuple[str, ...], float]
) -> Family:
    """Classes of times, the last label of each its upper bound, as a histogram: each bound counts all below it."""
    counts: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for (*others, bound), count in classes:
        counts[tuple(others)][bound] = count
    family = HistogramMetricFamily(name, text, labels=labels)
    for key, of_bound in counts.items():
        family.add_metric(key, _adding_up(of_bound), sum_value=sums.get(key, 0.0))
    return family


def _adding_up(of_bound: Mapping[str, float]) -> list[tuple[str, float]]:
    below, found = 0.0, []
    for bound in (*map(str, BUCKETS), BEYOND):
        below += of_bound.get(bound, 0.0)
        found.append((bound, below))
    return found
