"""Reports on their way: sent in batches by a thread of its own, tried again until the scheduler has answered.

The outbox lives in memory. What must not be lost is in the journal, which puts it here again after a restart.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scheduler.agent.client import InvalidRequestError, NotAllowedError, SchedulerClient, UnreachableError
from scheduler.agent.complaints import Complaints
from scheduler.agent.wire import WireError
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import Report, ReportOutcome

log = logging.getLogger(__name__)

BATCH = 200
BATCH_OUTPUT_BYTES = 2 * 1024 * 1024
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
REFUSED_PAUSE = 60.0
_LOOK_AGAIN = 10.0


@dataclass(kw_only=True, slots=True, eq=False)
class _Waiting:
    report: Report
    since: Instant
    not_before: float = 0.0

    def aged(self) -> Report:
        return replace(self.report, age_seconds=self.report.age_seconds + self.since.age())


class Outbox:
    """Keeps each run's reports in order; a batch has at most one of a run."""

    def __init__(
        self, client: SchedulerClient, *, answered: Callable[[Sequence[tuple[Report, ReportOutcome]]], None]
    ) -> None:
        self._client = client
        self._answered = answered
        self._changed = threading.Condition()
        self._waiting: dict[str, list[_Waiting]] = {}
        self._in_flight: set[str] = set()
        self._complaints = Complaints("Reports")
        self._closed = False
        self._thread = threading.Thread(target=self._send_for_ever, daemon=True, name="reports")
        self._thread.start()

    def put(self, report: Report) -> None:
        """Have a report sent. It takes the place of a report of the same run and kind that still waits."""
        with self._changed:
            queue = self._waiting.setdefault(report.run_id, [])
            on_its_way = queue[: 1 if report.run_id in self._in_flight else 0]
            behind = [each for each in queue[len(on_its_way) :] if not _same_kind(each.report, report)]
            kept = on_its_way + behind
            self._waiting[report.run_id] = [*kept, _Waiting(report=report, since=Instant.now())]
            self._changed.notify()

    def drop(self, run_id: str) -> None:
        """Send nothing more of this run."""
        with self._changed:
            self._waiting.pop(run_id, None)

    @property
    def is_empty(self) -> bool:
        """Everything has been answered."""
        with self._changed:
            return not self._waiting

    def close(self) -> None:
        """Stop sending. What waits is dropped here; the journal has the ends."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout=1.0)
        self._client.close()

    def _send_for_ever(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, timeout=pause)
                self._changed.wait_for(lambda: self._closed or self._is_due(), timeout=_LOOK_AGAIN)
                if self._closed:
                    return
                batch = self._next_batch()
                self._in_flight = {each.report.run_id for each in batch}
            pause = self._send(batch, pause) if batch else 0.0
            with self._changed:
                self._in_flight = set()

    def _is_due(self) -> bool:
        return any(queue[0].not_before <= time.monotonic() for queue in self._waiting.values())

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        output_bytes = 0
        for queue in self._waiting.values():
            first = queue[0]
            if first.not_before > time.monotonic():
                continue
            output = first.report.output
            output_bytes += len(output.head) + len(output.tail) if output else 0
            if batch and (len(batch) >= BATCH or output_bytes > BATCH_OUTPUT_BYTES):
                break
            batch.append(first)
        return batch

    def _send(self, batch: Sequence[_Waiting], last_pause: float) -> float:
        """Send a batch; how long to pause before the next."""
        longer = min(max(FIRST_PAUSE, last_pause * 2), LONGEST_PAUSE)
        try:
            outcomes = self._client.report([each.aged() for each in batch])
        except InvalidRequestError as error:
            return self._send_singly(batch, error)
        except (UnreachableError, NotAllowedError, WireError) as error:
            self._complaints.about(error)
            return longer
        self._complaints.over()
        return 0.0 if self._settle(batch, outcomes) else longer

    def _send_singly(self, batch: Sequence[_Waiting], error: InvalidRequestError) -> float:
        """One bad report must not hold up the others; without what the job wrote it may pass itself."""
        if len(batch) > 1:
            return max(self._send([each], 0.0) for each in batch)
        each = batch[0]
        log.error("The report of run %s was refused as malformed: %s", each.report.run_id, error)
        bare = _bare(each.report)
        if bare == each.report:
            each.not_before = time.monotonic() + REFUSED_PAUSE
            return 0.0
        each.report = bare
        return self._send([each], 0.0)

    def _settle(self, batch: Sequence[_Waiting], outcomes: Sequence[ReportOutcome]) -> bool:
        """Hand on what was answered. False when something was not."""
        heard = {outcome.run_id: outcome for outcome in outcomes}
        answered = [each for each in batch if each.report.run_id in heard]
        with self._changed:
            for each in answered:
                queue = [left for left in self._waiting.get(each.report.run_id, []) if left is not each]
                if queue:
                    self._waiting[each.report.run_id] = queue
                else:
                    self._waiting.pop(each.report.run_id, None)
        self._answered([(each.report, heard[each.report.run_id]) for each in answered])
        return len(answered) == len(batch)


def _same_kind(one: Report, other: Report) -> bool:
    return one.state is other.state or (one.state.is_end and other.state.is_end)


def _bare(report: Report) -> Report:
    """The report without what a job wrote."""
    containers = tuple(replace(each, message="") for each in report.containers)
    return replace(report, output=None, message=report.message[:500], containers=containers, warnings=())
