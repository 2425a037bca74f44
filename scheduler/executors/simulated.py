"""A simulated executor: runs are scripts of how they end. For tests and benchmarks, and nothing else."""

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from policies.failures import ContainerEnd, Failure, Signals
from scheduler.executors.protocol import (
    ExitRecord,
    KilledBy,
    Lease,
    NameTakenError,
    NodeDescription,
    Observation,
    Remains,
    RunPhase,
)

_OUT_OF_MEMORY = 137
_TERMINATED = 143


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a run ends."""

    phase: RunPhase
    signals: Signals = field(default_factory=Signals)
    exit: ExitRecord | None = None
    failure: Failure | None = None
    """A built-in failure that the executor names itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """What a run does."""

    ending: Ending
    seconds: float | None = 0.0
    """How long it works before that; None works until it is stopped."""


type Play = Callable[[Lease], Script]
"""Says what a lease will do. May raise `LeaseRefusedError` or `LeaseImpossibleError` instead."""


def succeeds() -> Ending:
    """Exit code 0."""
    return Ending(phase=RunPhase.SUCCEEDED, exit=ExitRecord(exit_code=0))


def exits(code: int, *, message: str = "") -> Ending:
    """A failure of the program itself."""
    return _failure(
        ContainerEnd(name="main", exit_code=code, reason="Error", message=message), ExitRecord(exit_code=code)
    )


def out_of_memory(lease: Lease) -> Ending:
    """Killed for using all the memory it was leased."""
    record = ExitRecord(
        exit_code=_OUT_OF_MEMORY,
        signal=9,
        killed_by=KilledBy.MEMORY,
        memory_peak_bytes=lease.memory_bytes,
    )
    return _failure(ContainerEnd(name="main", exit_code=_OUT_OF_MEMORY, reason="OOMKilled"), record)


def lost(failure: Failure) -> Ending:
    """The node or its runner went away."""
    return Ending(phase=RunPhase.LOST, failure=failure)


def needs_memory(size: int, *, seconds: float = 0.0) -> Play:
    """Every run ends out of memory unless it is leased so many bytes, and then succeeds."""

    def play(lease: Lease) -> Script:
        enough = lease.memory_bytes == 0 or lease.memory_bytes >= size
        return Script(ending=succeeds() if enough else out_of_memory(lease), seconds=seconds)

    return play


class SimulatedExecutor:
    """An `Executor` without processes. It outlives the agents that are given it, as real runs do."""

    honours: Sequence[str] = ("spec.containers", "spec.initContainers", "spec.nodeSelector")

    def __init__(self, *, nodes: Sequence[NodeDescription], play: Play) -> None:
        self.removes = True
        """Whether remains go when they are removed; False has them stuck."""
        self._nodes = tuple(nodes)
        self._play = play
        self._changed = threading.Condition()
        self._woken = False
        self._going: dict[str, Ending] = {}
        self._due: list[tuple[float, str]] = []
        self._news: list[Observation] = []
        self._remains: dict[str, str] = {}

    def nodes(self) -> Sequence[NodeDescription]:
        """Those it was made with."""
        return self._nodes

    def adopt(self, *, run_id: str, pod_name: str) -> bool:
        """True for a run whose remains are there."""
        return self._remains.get(pod_name) == run_id

    def start(self, lease: Lease) -> None:
        """Start what the play says."""
        if lease.pod_name in self._remains:
            raise NameTakenError(f"{lease.pod_name} is still there.")
        script = self._play(lease)
        with self._changed:
            self._remains[lease.pod_name] = lease.run_id
            self._going[lease.run_id] = script.ending
            self._news.append(Observation(run_id=lease.run_id, phase=RunPhase.RUNNING))
            if script.seconds is not None:
                heapq.heappush(self._due, (time.monotonic() + script.seconds, lease.run_id))
            self._changed.notify_all()

    def observe(self, *, timeout: float) -> Sequence[Observation]:
        """News, waited for."""
        until = time.monotonic() + timeout
        with self._changed:
            self._end_what_is_due()
            while not self._news and not self._woken and (left := until - time.monotonic()) > 0:
                soonest = self._due[0][0] - time.monotonic() if self._due else left
                self._changed.wait(max(0.0, min(left, soonest)))
                self._end_what_is_due()
            self._woken = False
            news, self._news = self._news, []
            return news

    def wake(self) -> None:
        """Make `observe` return."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def stop(self, run_id: str, *, grace_seconds: float | None) -> None:
        """Runs obey at once, whatever their grace."""
        with self._changed:
            record = ExitRecord(exit_code=_TERMINATED, signal=15, killed_by=KilledBy.STOP)
            container = ContainerEnd(name="main", exit_code=_TERMINATED, reason="Error")
            if run_id in self._going:
                self._end(run_id, _failure(container, record))
            self._changed.notify_all()

    def remove(self, pod_name: str) -> None:
        """Gone at once, unless remains are stuck; a run that still works ends without a word."""
        with self._changed:
            if self.removes:
                self._going.pop(self._remains.pop(pod_name, ""), None)

    def remains(self, pod_name: str) -> Remains:
        """Whether there are any."""
        return Remains(present=pod_name in self._remains)

    def close(self) -> None:
        """Nothing to let go of."""

    def _end_what_is_due(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic():
            _, run_id = heapq.heappop(self._due)
            if run_id in self._going:
                self._end(run_id, self._going[run_id])

    def _end(self, run_id: str, ending: Ending) -> None:
        del self._going[run_id]
        self._news.append(
            Observation(
                run_id=run_id,
                phase=ending.phase,
                signals=ending.signals,
                exit=ending.exit,
                failure=ending.failure,
            )
        )


def _failure(container: ContainerEnd, record: ExitRecord) -> Ending:
    return Ending(phase=RunPhase.FAILED, signals=Signals(containers=(container,)), exit=record)
