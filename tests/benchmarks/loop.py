"""Runs per second through the whole loop: submitted, placed, fetched, run, reported, settled, placed again.

Executors are simulated: each job's first run ends out of memory, its second, with twice the memory, ends well, and no
run takes any time. Scheduling rates are switched off. The stages are measured one at a time as well, with everything
else at rest: the CPU each takes in all processes together is its share.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from lookout.client import Client, TackError
from scheduler.executors.simulated import needs_memory
from tests.benchmarks import growth, processes
from tests.benchmarks.ended_runs import Connection
from tests.benchmarks.scratch import CHECKOUT, DidNotStart, Scratch, scratch
from tests.benchmarks.simulated_agents import Address, SimulatedAgent, everything
from tests.benchmarks.storm import connect

AIM, LEAST = 1_000.0, 200.0
"""Runs a second on two cores."""
JOB_FILE = 500
"""Jobs in one submission."""
JOB_SETS = 20
MEBI = 1 << 20
ENVIRONMENT = {
    "TACK__SCHEDULING__MAXIMUMSCHEDULINGRATE": "0",
    "TACK__SCHEDULING__MAXIMUMPERQUEUESCHEDULINGRATE": "0",
}
POLICY = {
    "apiVersion": "armadaproject.io/v1beta1",
    "kind": "RetryPolicy",
    "name": "loop",
    "retryLimit": 2,
    "defaultAction": "Fail",
    "rules": [{"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": {"factor": 2}}}}],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """A scratch Tack with simulated executors."""

    tack: Scratch
    line: Connection
    agents: Sequence[SimulatedAgent]

    @property
    def client(self) -> Client:
        return self.tack.client

    def cpu(self) -> dict[str, float]:
        """CPU used so far, by process; `agents` is this one, which submits as well."""
        found = processes.cpu_seconds(processes.services(self.tack.var))
        return {**found, "agents": time.process_time()}

    def count(self, condition: str) -> int:
        found = self.line.execute(f"SELECT count(*) FROM {condition}").fetchone()  # noqa: S608
        return int(found[0]) if found else 0

    def wait_for(self, count: int, condition: str, *, seconds: float = 600.0) -> None:
        """Wait until so many rows are there."""
        deadline = time.monotonic() + seconds
        while (found := self.count(condition)) < count:
            if time.monotonic() > deadline:
                raise DidNotStart(f"Only {found} of {count}: {condition}")
            time.sleep(0.1)

    def wait_for_ends(self, count: int, *, seconds: float = 600.0) -> None:
        """Wait until the scheduler has accepted so many ends."""
        deadline = time.monotonic() + seconds
        while (found := sum(agent.accepted_ends for agent in self.agents)) < count:
            if time.monotonic() > deadline:
                raise DidNotStart(f"Only {found} of {count} runs have ended.")
            time.sleep(0.01)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage on its own."""

    name: str
    runs: int
    seconds: float
    cpu: dict[str, float]

    @property
    def cpu_ms(self) -> float:
        """Per run."""
        return 1000 * sum(self.cpu.values()) / self.runs


def main(arguments: Sequence[str]) -> int:
    """Measure and print. The exit code: 0 when the least is reached, 1 when not, 2 when nothing could be measured."""
    options = _parse(arguments)
    try:
        with _loop(options) as loop:
            _say(
                "Scheduling rates are switched off (maximumSchedulingRate 0, maximumPerQueueSchedulingRate 0)."
            )
            if options.minutes:
                return _go_on(loop, options)
            stages = _measure_stages(loop, options.jobs)
            _print_stages(stages)
            rate = _measure_whole(loop, options.jobs)
    except (TackError, DidNotStart) as error:
        sys.stderr.write(f"tack: {error}\n")
        return 2
    return 0 if rate >= LEAST else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack bench loop", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=5_000, help="jobs, of two runs each (%(default)s)")
    parser.add_argument("--executors", type=int, default=4, help="simulated executors (%(default)s)")
    parser.add_argument("--nodes", type=int, default=20, help="nodes of each (%(default)s)")
    parser.add_argument("--minutes", type=float, default=0.0, help="go on for so long and show what grows")
    return parser.parse_args(arguments)


@contextmanager
def _loop(options: argparse.Namespace) -> Iterator[Loop]:
    with ExitStack() as closing:
        tack = closing.enter_context(scratch(ENVIRONMENT))
        line = closing.enter_context(connect(tack))
        agents = [_agent(tack, f"sim{number}", options.nodes) for number in range(options.executors)]
        for agent in agents:
            closing.callback(agent.close)
            agent.heartbeat()
        tack.client.apply_retry_policy(POLICY)
        # The machine's own executor keeps out of it.
        os.kill(processes.services(tack.var)["agent"], signal.SIGSTOP)
        line.execute("UPDATE scheduler_node SET schedulable = false WHERE executor_id = 'local'")
        try:
            yield Loop(tack=tack, line=line, agents=agents)
        finally:
            os.kill(processes.services(tack.var)["agent"], signal.SIGCONT)


def _agent(tack: Scratch, name: str, nodes: int) -> SimulatedAgent:
    token_file = tack.var / f"{name}.token"
    token_file.write_text(_token(tack, name))
    address = Address(url=tack.url, token_file=token_file, executor=name)
    return SimulatedAgent(address, nodes=nodes, play=needs_memory(64 * MEBI))


def _token(tack: Scratch, executor: str) -> str:
    code = (
        "from lookout.access import ensure_person, issue_token; from lookout.models import Scope;"
        f"print(issue_token(ensure_person('agent'), Scope.EXECUTOR, executor={executor!r}, note='bench'))"
    )
    told = {"PYTHONPATH": str(CHECKOUT), "TACK_VAR": str(tack.var), "DATABASE_URL": tack.database_url}
    command = [sys.executable, "-P", str(CHECKOUT / "manage.py"), "shell", "--no-imports", "-c", code]
    done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DidNotStart(done.stderr)
    return done.stdout.strip().splitlines()[-1]


# Stage by stage.


def _measure_stages(loop: Loop, jobs: int) -> list[Stage]:
    queue, warm = "loop-stages", 20
    loop.client.create_queue({**_queue(queue), "cordoned": True})
    _submit(loop.client, queue, warm)  # pays for connections and imports
    runs = jobs + warm
    stages = [_stage(loop, "submit", jobs, lambda: _submit(loop.client, queue, jobs))]
    stages.append(_stage(loop, "round", runs, lambda: _place(loop, queue, runs)))
    loop.client.update_queue(queue, {**_queue(queue), "cordoned": True})
    stages.append(_stage(loop, "work", runs, lambda: everything(loop.agents, _fetch, count=runs)))
    worker = processes.services(loop.tack.var)["worker"]
    os.killpg(worker, signal.SIGSTOP)
    stages.append(_stage(loop, "report", runs, lambda: everything(loop.agents, _tell, count=runs)))
    stages.append(_stage(loop, "settle", runs, lambda: _settle(loop, worker, runs)))
    return stages


def _settle(loop: Loop, worker: int, runs: int) -> None:
    os.killpg(worker, signal.SIGCONT)
    loop.wait_for(runs, "scheduler_decision")


def _place(loop: Loop, queue: str, runs: int) -> None:
    loop.client.update_queue(queue, _queue(queue))
    loop.wait_for(
        runs, f"scheduler_run r JOIN scheduler_job j ON j.id = r.job_id WHERE j.queue_id = '{queue}'"
    )


def _fetch(agent: SimulatedAgent) -> int:
    return agent.ask(wait_seconds=0)


def _tell(agent: SimulatedAgent) -> int:
    return agent.report(timeout=0.1)


def _stage(loop: Loop, name: str, runs: int, work: Callable[[], object]) -> Stage:
    time.sleep(1.0)  # what the stage before left behind ends
    before, started = loop.cpu(), time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    used = {process: now - before[process] for process, now in loop.cpu().items()}
    return Stage(name=name, runs=runs, seconds=seconds, cpu=used)


def _print_stages(stages: Sequence[Stage]) -> None:
    names = ("web", "worker", "postgres", "broker", "agents")
    _say("\nEach stage on its own, CPU in ms per run:")
    _say(
        f"{'stage':<8} {'runs':>7} {'seconds':>8} {'runs/s':>7} {'share':>6} {'CPU':>6}  of it "
        + " ".join(f"{n:>8}" for n in names)
    )
    total = sum(stage.cpu_ms for stage in stages)
    for stage in stages:
        parts = " ".join(f"{1000 * stage.cpu.get(name, 0.0) / stage.runs:>8.2f}" for name in names)
        _say(
            f"{stage.name:<8} {stage.runs:>7,} {stage.seconds:>8.2f} {stage.runs / stage.seconds:>7,.0f}"
            f" {100 * stage.cpu_ms / total:>4.0f} % {stage.cpu_ms:>6.2f}        {parts}"
        )
    _say(f"Two cores could do {2000 / total:,.0f} runs/s if each run took every stage once ({total:.2f} ms).")


# All at once.


def _measure_whole(loop: Loop, jobs: int) -> float:
    queue = "loop"
    loop.client.create_queue(_queue(queue))
    ended = sum(agent.accepted_ends for agent in loop.agents)
    for agent in loop.agents:
        agent.start()
    before, started = loop.cpu(), time.perf_counter()
    submitting = threading.Thread(target=_submit, args=(loop.client, queue, jobs))
    submitting.start()
    loop.wait_for_ends(ended + 2 * jobs)
    submitting.join()
    seconds = time.perf_counter() - started
    if (done := loop.count(f"scheduler_job WHERE queue_id = '{queue}' AND state = 'succeeded'")) != jobs:
        raise DidNotStart(f"Only {done} of {jobs} jobs succeeded.")
    rate = 2 * jobs / seconds
    used = {name: now - before[name] for name, now in loop.cpu().items()}
    _say(
        f"\nThe whole loop: {2 * jobs:,} runs of {jobs:,} jobs in {seconds:.1f} s, {rate:,.0f} runs/s (aim {AIM:,.0f})."
    )
    _say(
        "CPU in ms per run: "
        + ", ".join(f"{name} {1000 * each / (2 * jobs):.2f}" for name, each in used.items())
    )
    return rate


def _queue(name: str) -> dict[str, Any]:
    return {"name": name, "retryPolicies": ["loop"]}


def _submit(client: Client, queue: str, jobs: int) -> None:
    for number, first in enumerate(range(0, jobs, JOB_FILE)):
        count = min(JOB_FILE, jobs - first)
        client.submit_jobs({"queue": queue, "jobSetId": f"set-{number % JOB_SETS}", "jobs": [_job()] * count})


def _job() -> dict[str, Any]:
    amounts = {"cpu": "100m", "memory": "32Mi"}
    container = {
        "name": "main",
        "command": ["/bin/true"],
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {"priority": 0, "namespace": "default", "podSpec": {"containers": [container]}}


# For a long time.


def _go_on(loop: Loop, options: argparse.Namespace) -> int:
    """Keep the loop busy for so many minutes and show every now and then what has grown."""
    loop.client.create_queue(_queue("loop"))
    for agent in loop.agents:
        agent.start()
    started = last = time.monotonic()
    every = min(60.0, options.minutes * 60 / 10)
    submitted = ended_before = 0
    while time.monotonic() - started < options.minutes * 60:
        ended = sum(agent.accepted_ends for agent in loop.agents)
        if 2 * submitted - ended < 2 * options.jobs:
            _submit(loop.client, "loop", JOB_FILE)
            submitted += JOB_FILE
        else:
            time.sleep(0.1)
        if time.monotonic() - last >= every:
            rate = (ended - ended_before) / (time.monotonic() - last)
            last, ended_before = time.monotonic(), ended
            _print_state(loop, minutes=(last - started) / 60, runs=ended, rate=rate)
    return 0


def _print_state(loop: Loop, *, minutes: float, runs: int, rate: float) -> None:
    resident = processes.memory_bytes(processes.services(loop.tack.var))
    memory = ", ".join(f"{name} {size >> 20} MB" for name, size in resident.items() if name != "agent")
    number = loop.line.execute("SELECT max(last_event) FROM scheduler_jobset").fetchone()
    _say(
        f"\nafter {minutes:.1f} min: {runs:,} runs, {rate:,.0f} runs/s; newest event {number and number[0]}; {memory}"
    )
    _say("\n".join([growth.HEADING, *map(str, growth.table_sizes(loop.line))]))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
