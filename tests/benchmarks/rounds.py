"""Seconds that a round takes to read, plan and write, from 1,000 to 100,000 queued jobs on 100 to 5,000 nodes.

The jobs ask for twenty different amounts and wait in fifty queues. Where they are to be placed the nodes are empty; where
nothing is to be placeable the nodes are full of runs that do not give way. Scheduling rates are switched off. A round
leases 5,000 jobs at most: the figures are of all rounds it takes together. CPU is that of the process that makes the
rounds, without the database.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lookout.client import TackError
from tests.benchmarks import processes, round_rows
from tests.benchmarks.ended_runs import Connection, StormFailed
from tests.benchmarks.round_rows import QUEUES, SIZES, Rows
from tests.benchmarks.scratch import CHECKOUT, DidNotStart, Scratch, scratch
from tests.benchmarks.storm import connect

ALL = (
    Rows(jobs=1_000, nodes=100),
    Rows(jobs=10_000, nodes=1_000),
    Rows(jobs=100_000, nodes=5_000),
    Rows(jobs=1_000, nodes=100, full=True),
    Rows(jobs=10_000, nodes=1_000, full=True),
    Rows(jobs=100_000, nodes=1_000, full=True),
    Rows(jobs=100_000, nodes=5_000, full=True),
)
AIMS = {ALL[1]: 3.0, ALL[5]: 2.0}
"""Seconds on two cores."""
STOPPED = ("agent", "worker", "schedule")
"""Processes of the scratch Tack that would make rounds too, or open its own nodes again."""
_LET_GO = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
ENVIRONMENT = {
    "TACK__SCHEDULING__MAXIMUMSCHEDULINGRATE": "0",
    "TACK__SCHEDULING__MAXIMUMPERQUEUESCHEDULINGRATE": "0",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What the rounds did, and the seconds they took."""

    placed: int
    rounds: int
    read: float
    plan: float
    whole: float
    cpu: float
    """Of the process that makes the rounds, in seconds."""

    @property
    def write(self) -> float:
        """What the rounds took beyond reading and planning."""
        return max(0.0, self.whole - self.read - self.plan)


def main(arguments: Sequence[str]) -> int:
    """Measure and print. The exit code: 0 when the aims are met, 1 when not, 2 when nothing could be measured."""
    options = _parse(arguments)
    try:
        with scratch(ENVIRONMENT) as tack, connect(tack) as line:
            round_rows.make_template(tack.client, line)
            _say(
                "Scheduling rates are switched off (maximumSchedulingRate 0, maximumPerQueueSchedulingRate 0)."
            )
            _say(f"{QUEUES} queues, jobs of {SIZES} sizes. Seconds of all rounds together:\n")
            _say(
                f"{'queued':>8} {'nodes':>6} {'placed':>8} {'rounds':>7} {'read':>7} {'plan':>7} {'write':>7} {'whole':>7} {'CPU':>7}  aim"
            )
            with _alone(tack, line):
                met = []
                for rows in [each for each in ALL if each.jobs <= options.most]:
                    round_rows.pour(line, rows)
                    met.append(_print(rows, _measure(tack)))
    except (TackError, StormFailed, DidNotStart) as error:
        sys.stderr.write(f"tack: {error}\n")
        return 2
    return 0 if all(met) else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack bench rounds", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--most", type=int, default=100_000, help="measure only up to so many queued jobs (%(default)s)"
    )
    return parser.parse_args(arguments)


@contextmanager
def _alone(tack: Scratch, line: Connection) -> Iterator[None]:
    """Nobody else makes rounds, or holds what a process was stopped in the middle of."""
    known = processes.services(tack.var)
    stopped = [known[name] for name in STOPPED if name in known]
    for pid in stopped:
        os.killpg(pid, signal.SIGSTOP)
    line.execute(_LET_GO)
    try:
        yield
    finally:
        for pid in stopped:
            os.killpg(pid, signal.SIGCONT)


def _measure(tack: Scratch) -> Measured:
    code = "from tests.benchmarks import timed_rounds; timed_rounds.main()"
    told = {"PYTHONPATH": str(CHECKOUT), "TACK_VAR": str(tack.var), "DATABASE_URL": tack.database_url}
    command = [sys.executable, "-P", str(CHECKOUT / "manage.py"), "shell", "--no-imports", "-c", code]
    environment = {**os.environ, **ENVIRONMENT, **told}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DidNotStart(done.stderr[-2_000:])
    return Measured(**json.loads(done.stdout.strip().splitlines()[-1]))


def _print(rows: Rows, found: Measured) -> bool:
    aim = AIMS.get(rows)
    met = aim is None or found.whole <= aim
    _say(
        f"{rows.jobs:>8,} {rows.nodes:>6,} {found.placed:>8,} {found.rounds:>7}"
        f" {found.read:>7.2f} {found.plan:>7.2f} {found.write:>7.2f} {found.whole:>7.2f} {found.cpu:>7.2f}"
        + (f"  {aim:g} s, {'met' if met else 'missed'}" if aim else "")
    )
    return met


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
