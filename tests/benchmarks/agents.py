"""What many agents cost that have nothing to do: heartbeats of twenty nodes each, and long polls for work.

All of them live in one process and speak to a scratch Tack as real agents do. Beside them a person looks at the
jobs, so that it shows where agents begin to be in people's way.
"""

import argparse
import asyncio
import os
import random
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from scheduler.agent.wire import heartbeat_json
from scheduler.executors.protocol import Heartbeat
from tests.benchmarks.latency import percentile
from tests.benchmarks.processes import cpu_seconds, services
from tests.benchmarks.scratch import CHECKOUT, Scratch, scratch
from tests.benchmarks.simulated_agents import simulated_nodes

NODES = 20
HEARTBEAT_SECONDS = 5.0
WAIT_SECONDS = 20.0
LOOK_SECONDS = 0.5
_ISSUE = (
    "from lookout.access import ensure_person, issue_token; from lookout.models import Scope;"
    "person = ensure_person('agent');"
    "print(*(issue_token(person, Scope.EXECUTOR, executor=f'many-{number}', note='bench')"
    " for number in range({count})))"
)


@dataclass(kw_only=True, slots=True)
class Measured:
    """What was seen, in milliseconds, and what went wrong."""

    heartbeats: list[float] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    polls: int = 0
    failed: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True, slots=True)
class Someone:
    """One who asks."""

    client: httpx.AsyncClient
    name: str
    token: str
    until: float
    seen: Measured

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def post(self, what: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer; nothing, after a second, when it failed."""
        try:
            answer = await self.client.post(f"/api/executor/v1/{what}", json=body, headers=self.headers)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            self.seen.failed[_kind(error)] += 1
            await asyncio.sleep(1.0)
            return {}
        found: Mapping[str, Any] = answer.json()
        return found


async def _beat(agent: Someone) -> None:
    await asyncio.sleep(random.uniform(0, HEARTBEAT_SECONDS))  # noqa: S311 - agents do not start in step
    body = heartbeat_json(
        Heartbeat(
            executor=agent.name,
            pool="many",
            version="bench",
            agent_time=datetime.now(UTC).isoformat(),
            nodes=tuple(simulated_nodes(agent.name, NODES)),
        )
    )
    while time.monotonic() < agent.until:
        began = time.monotonic()
        await agent.post("heartbeat", body)
        agent.seen.heartbeats.append((time.monotonic() - began) * 1000)
        await asyncio.sleep(max(0.0, HEARTBEAT_SECONDS - (time.monotonic() - began)))


async def _poll(agent: Someone) -> None:
    await asyncio.sleep(random.uniform(0, HEARTBEAT_SECONDS))  # noqa: S311
    asked = {"executor": agent.name, "runs": [], "waitSeconds": WAIT_SECONDS}
    while time.monotonic() < agent.until:
        answer = await agent.post("work", asked)
        agent.seen.polls += 1
        await asyncio.sleep(float(answer.get("askAgainSeconds") or 0.0))


async def _look(person: Someone) -> None:
    await asyncio.sleep(HEARTBEAT_SECONDS)
    while time.monotonic() < person.until:
        began = time.monotonic()
        (await person.client.get("/api/v1/jobs?limit=50", headers=person.headers)).raise_for_status()
        person.seen.looks.append((time.monotonic() - began) * 1000)
        await asyncio.sleep(LOOK_SECONDS)


async def _crowd(tack: Scratch, tokens: Sequence[str], seconds: float) -> Measured:
    seen, until = Measured(), time.monotonic() + seconds
    async with AsyncExitStack() as stack:
        # One for each: what a pool of connections costs grows with them, and would be taken for what Tack costs.
        trust = ssl.create_default_context()
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=tack.url, timeout=WAIT_SECONDS + 30, verify=trust)
            )
            for _ in (*tokens, "person")
        ]
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        admin = (tack.var / "token").read_text().split()[-1]
        tasks.create_task(_look(Someone(client=clients[-1], name="", token=admin, until=until, seen=seen)))
        for number, token in enumerate(tokens):
            agent = Someone(
                client=clients[number], name=f"many-{number}", token=token, until=until, seen=seen
            )
            tasks.create_task(_beat(agent))
            tasks.create_task(_poll(agent))
    return seen


def measure(tack: Scratch, *, agents: int, seconds: float) -> None:
    """Let so many agents be there for so long, and print what it came to."""
    tokens = _tokens(tack, agents)
    pids = services(tack.var)
    before = cpu_seconds(pids)
    seen = asyncio.run(_crowd(tack, tokens, seconds))
    used = {name: cpu - before.get(name, 0.0) for name, cpu in cpu_seconds(pids).items()}
    shares = ", ".join(f"{name} {100 * cpu / seconds:.0f} %" for name, cpu in used.items() if cpu > 0.5)
    sys.stdout.write(
        f"{agents:5} agents: {len(seen.heartbeats) / seconds:6.1f} heartbeats/s"
        f" (p95 {_p95(seen.heartbeats)}), {seen.polls / seconds:5.1f} polls/s,"
        f" the jobs list in p95 {_p95(seen.looks)}, failed: {dict(seen.failed) or 'none'}; of a core: {shares}\n"
    )


def _kind(error: httpx.HTTPError) -> str:
    return (
        str(error.response.status_code) if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
    )


def _p95(values: Sequence[float]) -> str:
    return f"{percentile(values, 95):.0f} ms" if values else "none"


def _tokens(tack: Scratch, count: int) -> list[str]:
    code = _ISSUE.replace("{count}", str(count))
    done = subprocess.run(
        [sys.executable, "-P", str(CHECKOUT / "manage.py"), "shell", "--no-imports", "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "TACK_VAR": str(tack.var),
            "DATABASE_URL": tack.database_url,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def main(arguments: Sequence[str]) -> int:
    """Measure and print, for each number of agents. The exit code is 0."""
    parser = argparse.ArgumentParser(prog="tack bench agents", description=__doc__.splitlines()[0])
    parser.add_argument("counts", nargs="*", type=int, default=[50, 200, 500], help="agents at once")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each crowd stays")
    options = parser.parse_args(arguments)
    for count in options.counts:
        with scratch() as tack:
            measure(tack, agents=count, seconds=options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
