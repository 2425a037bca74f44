"""How long from submission to start, and from a failure to the next start, through the real worker and executor.

Bells, not timers: on an idle machine 95 of 100 take less than a quarter of a second. Run it where Tack runs: the
moment of submission is by this machine's clock, the others are by Tack's.
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from lookout.client import Client, Conflict, JobDetail, TackError
from tests.benchmarks.job_files import RUNS_OUT_OF_MEMORY, SUCCEEDS, job_file
from tests.benchmarks.scratch import DidNotStart, scratch
from tests.benchmarks.storms_elsewhere import ENVIRONMENT, storms_elsewhere

PROMISE_MS = 250.0
"""Of the 95th percentile of each."""
PROMISE_IN_A_STORM_MS = 2_000.0
"""While ten thousand runs of other queues fail at once, again and again."""
RETRIES = 5
PATIENCE_SECONDS = 60.0
QUEUE = "bench-latency"
POLICY: dict[str, Any] = {
    "apiVersion": "armadaproject.io/v1beta1",
    "kind": "RetryPolicy",
    "name": QUEUE,
    "retryLimit": RETRIES,
    "defaultAction": "Fail",
    "rules": [{"action": "Retry", "onCategory": "oom"}],
}


class TookTooLong(RuntimeError):
    """A job did not end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Latencies:
    """Milliseconds, one for each time it happened."""

    submit_to_start: Sequence[float]
    failure_to_start: Sequence[float]

    def keep(self, promise_ms: float) -> bool:
        """Whether both keep the promise."""
        return max(percentile(self.submit_to_start, 95), percentile(self.failure_to_start, 95)) < promise_ms


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def measure(client: Client, *, samples: int) -> Latencies:
    """Measure each latency at least so often, one job at a time, on a Tack that has nothing else to do."""
    _make_queue(client)
    for _ in range(3):  # the first ones pay for connections and imports
        _run(client, SUCCEEDS)
    submitted: list[float] = []
    for _ in range(samples):
        time.sleep(random.uniform(0.05, 0.35))  # noqa: S311 - out of step with every timer
        asked, job = _run(client, SUCCEEDS)
        submitted.append(_submit_to_start(asked, job))
    failed: list[float] = []
    while len(failed) < samples:
        _, job = _run(client, RUNS_OUT_OF_MEMORY)
        failed += _failure_to_start(job)
    return Latencies(submit_to_start=submitted, failure_to_start=failed)


def main(arguments: Sequence[str]) -> int:
    """Measure and print. The exit code: 0 when the promise holds, 1 when not, 2 when nothing could be measured."""
    options = _parse(arguments)
    try:
        with _tack(options) as client:
            found = measure(client, samples=options.samples)
    except (TackError, TookTooLong, DidNotStart) as error:
        sys.stderr.write(f"tack: {error}\n")
        return 2
    _print("submit → start", found.submit_to_start)
    _print("failure → next start", found.failure_to_start)
    promise_ms = PROMISE_IN_A_STORM_MS if options.storm else PROMISE_MS
    holds = found.keep(promise_ms)
    said = "holds" if holds else "does not hold"
    sys.stdout.write(f"The promise (p95 under {promise_ms:,.0f} ms) {said}.\n")
    return 0 if holds else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack bench latency", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--url", help="a Tack that runs on this machine; without it, one is started for this")
    parser.add_argument("--token-file", type=Path, help="with the admin token of that Tack")
    parser.add_argument("--samples", type=int, default=40, help="how often each is measured (%(default)s)")
    parser.add_argument(
        "--storm",
        type=int,
        nargs="?",
        const=10_000,
        default=0,
        metavar="RUNS",
        help="meanwhile so many runs of other queues fail at once, over and over (%(const)s)",
    )
    found = parser.parse_args(arguments)
    if found.storm and (found.url or found.token_file):
        parser.error(
            "--storm writes into the database: it is for a Tack that is started for this, without --url"
        )
    return found


@contextmanager
def _tack(options: argparse.Namespace) -> Iterator[Client]:
    if options.url or options.token_file:
        with Client.from_environment(url=options.url or "", token_file=options.token_file) as client:
            yield client
    else:
        sys.stdout.write("Starting a Tack for this …\n")
        with scratch(ENVIRONMENT) as tack, storms_elsewhere(tack, runs=options.storm) as storms:
            yield tack.client
        if storms:
            sys.stdout.write(
                f"{len(storms)} storms of {options.storm:,} runs, settled in {_seconds(storms)}.\n"
            )


def _make_queue(client: Client) -> None:
    client.apply_retry_policy(POLICY)
    try:
        client.create_queue({"name": QUEUE, "retryPolicies": [QUEUE]})
    except Conflict:
        client.attach_retry_policies(QUEUE, [QUEUE])


def _run(client: Client, script: str) -> tuple[float, JobDetail]:
    """The moment before the job was submitted, and the job once it has ended."""
    asked = time.time()
    (submitted,) = client.submit_jobs(job_file(queue=QUEUE, job_set=f"latency-{uuid4()}", script=script))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.1)
        job = client.job(submitted.job_id)
        if job.has_ended:
            return asked, job
    raise TookTooLong(f"Job {submitted.job_id} has not ended within {PATIENCE_SECONDS:.0f} s.")


def _submit_to_start(asked: float, job: JobDetail) -> float:
    started = job.runs[0].started_at
    if started is None:
        raise TookTooLong(f"Job {job.job_id} ended as {job.state} without a start: {job.rejected_because}")
    return (started.timestamp() - asked) * 1000


def _failure_to_start(job: JobDetail) -> Iterator[float]:
    for failed, following in zip(job.runs, job.runs[1:], strict=False):
        if failed.ended_at is None or following.started_at is None:
            raise TookTooLong(f"A run of job {job.job_id} has no start or no end.")
        yield (following.started_at - failed.ended_at).total_seconds() * 1000


def _seconds(storms: Sequence[float]) -> str:
    return f"{min(storms):.1f} to {max(storms):.1f} s each"


def _print(what: str, values: Sequence[float]) -> None:
    shown = ", ".join(f"p{percent} {percentile(values, percent):.0f}" for percent in (50, 95))
    sys.stdout.write(f"{what:22} {shown}, worst {max(values):.0f} ms of {len(values)}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
