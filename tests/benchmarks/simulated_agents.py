"""Agents of simulated executors: they lease, run and report over HTTP as any agent does, and keep no journal.

Their runs take no time and no machine, so that what is measured is Tack.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from policies.failures import Disposition
from scheduler.agent.client import SchedulerClient
from scheduler.executors.protocol import (
    CategoryDescription,
    ExitRecord,
    Heartbeat,
    Lease,
    NodeDescription,
    Observation,
    Report,
    ReportState,
    WorkRequest,
)
from scheduler.executors.simulated import Play, SimulatedExecutor

BATCH = 200
"""Reports in one request, as real agents send them."""
WAIT_SECONDS = 5.0
HEARTBEAT_SECONDS = 5.0
CORES, MEMORY_GIB = 100, 400

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where an agent finds its scheduler, and with what."""

    url: str
    token_file: Path
    executor: str

    def client(self) -> SchedulerClient:
        return SchedulerClient(url=self.url, token_file=self.token_file, executor=self.executor)


def simulated_nodes(executor: str, count: int) -> list[NodeDescription]:
    """So many nodes that are never short of anything."""
    return [
        NodeDescription(
            name=f"{executor}-{number}",
            labels={"kubernetes.io/hostname": f"{executor}-{number}"},
            cpu_millicores=CORES * 1000,
            memory_bytes=MEMORY_GIB << 30,
        )
        for number in range(count)
    ]


class SimulatedAgent:
    """One executor and its agent. Its steps are taken one by one, or all the time after `start`."""

    def __init__(self, address: Address, *, nodes: int, play: Play) -> None:
        self._name = address.executor
        self._executor = SimulatedExecutor(nodes=simulated_nodes(address.executor, nodes), play=play)
        self._asking, self._reporting, self._heart = (address.client() for _ in range(3))
        self._pods: dict[str, str] = {}
        """Run id → pod name, of runs whose end the scheduler has not accepted."""
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self.accepted_ends = 0

    def heartbeat(self) -> None:
        """Say that the executor is there."""
        self._heart.heartbeat(
            Heartbeat(
                executor=self._name,
                pool="default",
                version="simulated",
                agent_time=datetime.now(UTC).isoformat(),
                nodes=tuple(self._executor.nodes()),
                categories=(CategoryDescription(name="oom", disposition=Disposition.DELETE),),
                tracked_node_labels=("kubernetes.io/hostname",),
                honours=("spec.containers", "spec.terminationGracePeriodSeconds"),
            )
        )

    def ask(self, *, wait_seconds: float) -> int:
        """Ask for work and start it; the number of new leases."""
        request = WorkRequest(executor=self._name, runs=tuple(self._pods), wait_seconds=wait_seconds)
        leases = [lease for lease in self._asking.work(request).leases if lease.run_id not in self._pods]
        for lease in leases:
            self._start(lease)
        return len(leases)

    def _start(self, lease: Lease) -> None:
        self._pods[lease.run_id] = lease.pod_name
        self._executor.start(lease)

    def report(self, *, timeout: float) -> int:
        """Report what has happened; the number of ends that were accepted."""
        seen = self._executor.observe(timeout=timeout)
        ends = [each for each in seen if each.phase.is_end]
        for each in ends:
            self._executor.remove(self._pods[each.run_id])
        self._send(_progress(each) for each in seen if not each.phase.is_end)
        self._send(_end(each) for each in ends)
        for each in ends:
            del self._pods[each.run_id]
        self.accepted_ends += len(ends)
        return len(ends)

    def _send(self, reports: Iterable[Report]) -> None:
        """Nothing is recorded about a run for the first time but by this agent: every outcome is good news."""
        waiting = list(reports)
        for first in range(0, len(waiting), BATCH):
            self._reporting.report(waiting[first : first + BATCH])

    def start(self) -> None:
        """Do it all, from threads of its own, until closed."""
        steps = (
            lambda: self.ask(wait_seconds=WAIT_SECONDS),
            lambda: self.report(timeout=WAIT_SECONDS),
            self._beat,
        )
        self._threads = [threading.Thread(target=self._for_ever, args=(step,), daemon=True) for step in steps]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop; what is on its way is waited for."""
        self._ended.set()
        self._executor.wake()
        for thread in self._threads:
            thread.join(WAIT_SECONDS + 10)
        for client in (self._asking, self._reporting, self._heart):
            client.close()

    def _beat(self) -> None:
        self.heartbeat()
        self._ended.wait(HEARTBEAT_SECONDS)

    def _for_ever(self, step: Callable[[], object]) -> None:
        while not self._ended.is_set():
            try:
                step()
            except Exception as error:
                log.exception("agent %s", self._name)
                if self._ended.wait(0.5):
                    return
                del error


def everything(
    agents: Sequence[SimulatedAgent], step: Callable[[SimulatedAgent], int], *, count: int
) -> None:
    """Take the step on every agent at once, until it has come to so many in all or comes to nothing any more."""
    lock = threading.Lock()
    done = 0

    def work(agent: SimulatedAgent) -> None:
        nonlocal done
        made = 1
        while made and done < count:
            made = step(agent)
            with lock:
                done += made

    threads = [threading.Thread(target=work, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _progress(seen: Observation) -> Report:
    return Report(run_id=seen.run_id, state=ReportState.RUNNING)


def _end(seen: Observation) -> Report:
    record = seen.exit or ExitRecord()
    if not record.exit_code:
        return Report(run_id=seen.run_id, state=ReportState.SUCCEEDED, exit_code=0)
    return Report(
        run_id=seen.run_id,
        state=ReportState.FAILED,
        exit_code=record.exit_code,
        signal=record.signal,
        category="oom",
        message=f"The memory limit was reached in run {seen.run_id}",
        reason="OOM",
        containers=seen.signals.containers,
        memory_peak_bytes=record.memory_peak_bytes,
        killed_by=record.killed_by,
    )
