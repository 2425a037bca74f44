"""The agent's loop: takes work, starts and stops runs, sees how they end, carries out what `lifecycle` says.

One thread does all of it and owns the journal and the executor. Three more only talk to the scheduler: one
asks for work, one sends reports, one says that the executor is there; they leave what they hear in an inbox.
"""

import contextlib
import heapq
import logging
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from scheduler.agent import lifecycle
from scheduler.agent.journal import Journal
from scheduler.agent.judging import Intent, Judge, Order
from scheduler.agent.lifecycle import Entry, Limits, Step
from scheduler.agent.outbox import Outbox
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import (
    Executor,
    FoundRun,
    Lease,
    LeaseForbiddenError,
    LeaseImpossibleError,
    LeaseRefusedError,
    NameTakenError,
    Observation,
    Outcome,
    Remains,
    Report,
    ReportOutcome,
    ReportState,
    RunPhase,
    Stop,
    Work,
)

log = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0
_FIRST_LOOK_AGAIN, _LONGEST_LOOK_AGAIN = 0.02, 5.0
_GONE = Remains(present=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class StopAgent:
    """Give runs their grace, return their leases, send what there is to send, then end. Said twice, it changes nothing."""

    hurry: bool = False
    """Without the grace; this may be said later."""
    last: Work = field(default_factory=Work)
    """What the scheduler wanted last. Leases go back as they came."""


type News = Work | Sequence[tuple[Report, ReportOutcome]] | StopAgent


class Agent:
    """Everything about one executor's runs. Made, it adopts the runs of the agent before it; then `run` it.

    `found` are runs whose remains are there: those the journal does not know are adopted as well.
    """

    def __init__(
        self,
        *,
        executor: Executor,
        journal: Journal,
        judge: Judge,
        limits: Limits,
        outbox: Callable[[Callable[[Sequence[tuple[Report, ReportOutcome]]], None]], Outbox],
        found: Sequence[FoundRun] = (),
    ) -> None:
        self._executor = executor
        self._journal = journal
        self._judge = judge
        self._limits = limits
        self._inbox: queue.SimpleQueue[tuple[News, Callable[[], None]]] = queue.SimpleQueue()
        self._outbox = outbox(lambda answers: self.tell(answers))
        self._looks: list[tuple[float, str]] = []
        self._pauses: dict[str, float] = {}
        self._stopping = False
        self._adopt(found)

    @property
    def known_runs(self) -> tuple[str, ...]:
        """Runs whose end the scheduler has not accepted yet. Safe from any thread."""
        return tuple(entry.run_id for entry in self._journal if entry.awaits_acceptance)

    @property
    def stopping_runs(self) -> tuple[str, ...]:
        """Those of the known runs about which a stop would change nothing. Safe from any thread."""
        return tuple(
            entry.run_id
            for entry in self._journal
            if entry.awaits_acceptance and (entry.end is not None or entry.intent is Intent.CANCEL)
        )

    def tell(self, news: News, *, done: Callable[[], None] = lambda: None) -> None:
        """Leave news for the loop; `done` is called when it has been dealt with. Safe from any thread."""
        self._inbox.put((news, done))
        self._executor.wake()

    def run(self, *, give_up_seconds: float = 5.0) -> None:
        """Work until told to stop, and then until all runs have ended and their reports are accepted.

        Reports that cannot be sent hold the end up for so many seconds after the last run; they stay in the journal.
        """
        give_up_at: float | None = None
        while not self._stopping or not self._is_finished(give_up_at):
            self._turn(self._patience(give_up_at))
            if self._stopping and give_up_at is None and not self._has_live_runs():
                give_up_at = time.monotonic() + give_up_seconds

    def close(self) -> None:
        """Let go of everything; runs that are left go on."""
        self._outbox.close()
        self._executor.close()
        self._journal.close()

    def _turn(self, timeout: float) -> None:
        self._take_observations(self._executor.observe(timeout=timeout))
        with contextlib.suppress(queue.Empty):
            while True:
                news, done = self._inbox.get_nowait()
                self._take_news(news)
                done()
        self._look_at_what_is_due()

    def _take_news(self, news: News) -> None:
        match news:
            case Work():
                self._take_work(news)
            case StopAgent():
                self._stop_all(hurry=news.hurry)
                self._take_work(news.last)
            case _:
                self._take_answers(news)

    # What the agent before this one left.

    def _adopt(self, found: Sequence[FoundRun]) -> None:
        # A run in no journal is one the journal was lost of: the scheduler waits for its end all the same.
        unknown = [each for each in found if each.run_id not in self._journal]
        self._journal.put(
            Entry(run_id=each.run_id, node=each.node, pod_name=each.pod_name) for each in unknown
        )
        for entry in self._journal:
            if entry.end is not None:
                self._look(entry.run_id)
            elif not self._executor.adopt(run_id=entry.run_id, pod_name=entry.pod_name):
                # Nothing of it began. If it is still wanted, the scheduler hands the lease out again.
                self._journal.forget(entry.run_id)
            elif entry.intent is not Intent.NONE:
                self._executor.stop(entry.run_id, grace_seconds=None)

    # What the scheduler wants.

    def _take_work(self, work: Work) -> None:
        for run_id in work.forget:
            self._forget(run_id)
        for lease in work.leases:
            if lease.run_id in self._journal:
                continue
            if self._stopping:
                self._turn_away(lease)
            elif not self._is_leaving(lease.pod_name):  # otherwise it comes again with the next answer
                self._accept(lease)
        for stop in work.stop:
            self._stop(stop)
        for run_id in work.missed:
            if run_id not in self._journal:
                log.warning("Run %s should be at work here, and nothing is left of it.", run_id)
                self._end(lifecycle.missed_run(run_id, now=Instant.now()))

    def _is_leaving(self, pod_name: str) -> bool:
        """A run of this name that the scheduler has finished with is being ended, and has time left for it."""
        leaving = (
            each for each in self._journal if each.pod_name == pod_name and each.intent is Intent.FORGET
        )
        patience = self._limits.stuck_terminating_seconds
        return any(
            each.end is None or (not each.end.gone and each.end.detected.age() <= patience)
            for each in leaving
        )

    def _accept(self, lease: Lease) -> None:
        now = Instant.now()
        entry = Entry(run_id=lease.run_id, node=lease.node, pod_name=lease.pod_name)
        # From here on the name is this run's: what earlier runs still wanted removed under it is not theirs.
        earlier = [each for each in self._journal if each.pod_name == lease.pod_name and each.end is not None]
        self._journal.put([entry, *(_gone(each) for each in earlier)])
        try:
            self._executor.start(lease)
        except NameTakenError as error:
            for each in list(self._journal):
                if each.pod_name == lease.pod_name and each.run_id != lease.run_id and each.end is None:
                    self._journal.forget(
                        each.run_id
                    )  # a run of the same job that is not the scheduler's any more
            self._end(lifecycle.without_run(entry, str(error), now=now))
        except LeaseRefusedError as error:
            self._end(lifecycle.without_run(entry, str(error), now=now))
        except LeaseForbiddenError as error:
            self._end(lifecycle.forbidden(entry, str(error), now=now))
        except LeaseImpossibleError as error:
            self._end(lifecycle.impossible(entry, str(error), now=now))
        else:
            log.info("Run %s of job %s begins on %s.", lease.run_id, lease.job_id, lease.node)
            self._outbox.put(_progress(entry, ReportState.PENDING))

    def _turn_away(self, lease: Lease) -> None:
        entry = Entry(run_id=lease.run_id, node=lease.node, pod_name=lease.pod_name)
        self._end(lifecycle.turned_away(entry, now=Instant.now()))

    def _stop(self, stop: Stop) -> None:
        entry = self._journal.get(stop.run_id)
        if entry is None:
            self._end(lifecycle.unknown_run(stop.run_id, now=Instant.now()))
        elif entry.end is None:
            if entry.intent is not Intent.CANCEL:
                self._journal.put([replace(entry, intent=Intent.CANCEL)])
            self._executor.stop(stop.run_id, grace_seconds=stop.grace_seconds)

    def _forget(self, run_id: str) -> None:
        entry = self._journal.get(run_id)
        if entry is None:
            return
        self._outbox.drop(run_id)
        if entry.end is not None:
            self._settle(lifecycle.told(entry))
        elif entry.intent is not Intent.FORGET:
            log.info("Run %s is not this executor's any more and is ended.", run_id)
            self._journal.put([replace(entry, intent=Intent.FORGET)])
            self._executor.stop(run_id, grace_seconds=None)

    def _stop_all(self, *, hurry: bool) -> None:
        if self._stopping and not hurry:
            return
        self._stopping = True
        live = [entry for entry in self._journal if entry.end is None]
        self._journal.put(
            replace(entry, intent=Intent.RETURN) for entry in live if entry.intent is Intent.NONE
        )
        for entry in live:
            self._executor.stop(entry.run_id, grace_seconds=0.0 if hurry else None)

    # What happens to runs.

    def _take_observations(self, seen: Sequence[Observation]) -> None:
        now = Instant.now()
        ended = []
        for each in seen:
            entry = self._journal.get(each.run_id)
            if entry is None:
                continue
            if each.is_end:
                ended.append(lifecycle.end_of(entry, each, self._judge, now=now))
            elif each.phase is RunPhase.RUNNING and entry.end is None:
                self._outbox.put(_progress(entry, ReportState.RUNNING))
        self._journal.put(ended)
        for entry in ended:
            if entry.end is not None:
                log.info(
                    "Run %s ended: %s %s", entry.run_id, entry.end.report.state, entry.end.report.category
                )
            self._look(entry.run_id)

    def _take_answers(self, answers: Sequence[tuple[Report, ReportOutcome]]) -> None:
        for report, answer in answers:
            if answer.outcome is Outcome.REFUSED:
                log.warning(
                    "The report '%s' of run %s was refused: %s", report.state, report.run_id, answer.why
                )
            entry = self._journal.get(report.run_id)
            if entry is not None and entry.end is not None and report.state.is_end:
                self._settle(lifecycle.told(entry))

    def _end(self, entry: Entry) -> None:
        self._journal.put([entry])
        self._look(entry.run_id)

    def _settle(self, entry: Entry) -> None:
        """The scheduler has the end of it; most often nothing is left and the entry goes at once."""
        if entry.end is not None and entry.end.gone:
            self._drop(entry)
        else:
            self._end(entry)

    # What is to be done about ended runs.

    def _look(self, run_id: str) -> None:
        """Carry out the next steps of an ended run, until nothing more can be done now."""
        for _ in range(3):  # remove, see that it is gone, report
            entry = self._journal.get(run_id)
            if entry is None or entry.end is None:
                return
            end = entry.end
            now = Instant.now()
            remains = _GONE if end.gone else self._executor.remains(entry.pod_name)
            steps = lifecycle.next_steps(end, remains, now=now, limits=self._limits)
            if not remains.present and not end.gone:
                entry = _gone(entry)
                self._journal.put([entry])
            for step in steps:
                self._carry_out(entry, step, now)
            if Step.REMOVE not in steps:
                break
        self._plan_look(run_id)

    def _carry_out(self, entry: Entry, step: Step, now: Instant) -> None:
        match step:
            case Step.REMOVE:
                self._remove(entry)
            case Step.REPORT | Step.REPORT_STUCK:
                self._outbox.put(lifecycle.due_report(entry, step, now=now))
            case Step.FORGET:
                self._drop(entry)

    def _remove(self, entry: Entry) -> None:
        try:
            self._executor.remove(entry.pod_name)
        except OSError as error:
            log.warning("The remains %s cannot be removed yet: %s", entry.pod_name, error)

    def _drop(self, entry: Entry) -> None:
        self._outbox.drop(entry.run_id)
        self._journal.forget(entry.run_id)
        self._pauses.pop(entry.run_id, None)

    def _plan_look(self, run_id: str) -> None:
        """When to look again at an ended run that is not done with, unless something happens before."""
        entry = self._journal.get(run_id)
        if entry is None or entry.end is None:
            return
        if entry.end.gone and not entry.end.told:
            return  # its report is on its way; the answer brings the next look
        if entry.end.told and entry.end.order is Order.REPORT_AND_RETAIN:
            pause = max(1.0, self._limits.retain_seconds - entry.end.detected.age())
        elif not entry.end.order.removes_first and not entry.end.told:
            return
        else:
            pause = min(self._pauses.get(run_id, _FIRST_LOOK_AGAIN / 2) * 2, _LONGEST_LOOK_AGAIN)
            self._pauses[run_id] = pause
        heapq.heappush(self._looks, (time.monotonic() + pause, run_id))

    def _look_at_what_is_due(self) -> None:
        due = set()
        while self._looks and self._looks[0][0] <= time.monotonic():
            due.add(heapq.heappop(self._looks)[1])
        for run_id in due:
            self._look(run_id)

    # How long to wait, and when to end.

    def _patience(self, give_up_at: float | None) -> float:
        until = [time.monotonic() + _IDLE_SECONDS]
        if self._looks:
            until.append(self._looks[0][0])
        if give_up_at is not None:
            until.append(give_up_at)
        return max(0.0, min(until) - time.monotonic())

    def _has_live_runs(self) -> bool:
        return any(entry.end is None for entry in self._journal)

    def _is_finished(self, give_up_at: float | None) -> bool:
        if self._has_live_runs():
            return False
        accepted = not any(entry.awaits_acceptance for entry in self._journal)
        return accepted or (give_up_at is not None and time.monotonic() >= give_up_at)


def _gone(entry: Entry) -> Entry:
    return entry if entry.end is None else replace(entry, end=replace(entry.end, gone=True))


def _progress(entry: Entry, state: ReportState) -> Report:
    return Report(run_id=entry.run_id, state=state, node=entry.node, pod_name=entry.pod_name)
