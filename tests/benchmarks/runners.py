"""What a runner costs and how closely it holds a limit, on every rung of the memory ladder that there is here.

Real runs on a local executor in this process, without a scheduler: `tack bench latency` measures the whole way.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scheduler.executors.ladder import RungMissingError
from scheduler.executors.local import LocalExecutor
from tests.benchmarks.latency import percentile
from tests.executors.places import MEBIBYTE, Bench, lease, settings

RUNGS = ("cgroup2", "cgroup1", "poll")
LIMIT = 64 * MEBIBYTE
_GIGABYTE = 1_000_000_000
_TICKS = os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str]) -> int:
    """Measure and print. The exit code is 0."""
    parser = argparse.ArgumentParser(prog="tack bench runners", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--samples", type=int, default=100, help="runs that do nothing (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of watching a run that waits (%(default)s)"
    )
    options = parser.parse_args(arguments)
    for rung in RUNGS:
        with tempfile.TemporaryDirectory(prefix="tack-bench-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o755)  # jobs are other users
            try:
                executor = LocalExecutor(settings(folder, memory_by=rung))
            except RungMissingError as error:
                _say(f"{rung}: {error}")
                continue
            with Bench(executor, folder) as bench:
                _measure(bench, rung, samples=options.samples, seconds=options.seconds)
    return 0


def _measure(bench: Bench, rung: str, *, samples: int, seconds: float) -> None:
    whole = [_milliseconds(bench) for _ in range(samples)]
    _say(
        f"{rung}: a run of `true`, start to end seen: p50 {percentile(whole, 50):.0f}, p95 {percentile(whole, 95):.0f} ms"
    )
    began = time.perf_counter()
    seen = bench.run(f"head -c {_GIGABYTE} /dev/zero")
    took = time.perf_counter() - began
    kept = seen.exit.output if seen.exit else None
    _say(
        f"{rung}: a gigabyte of output: {took:.1f} s, {len(kept.head) + len(kept.tail) if kept else 0} bytes kept"
    )
    cpu, memory = _cost(bench, seconds)
    _say(
        f"{rung}: a runner whose run waits: {cpu * 100:.2f} % of a core, {memory / MEBIBYTE:.1f} MiB of its own"
    )
    seen = bench.run("dd if=/dev/zero of=/dev/null bs=2000M count=1", memory_bytes=LIMIT)
    peak = (seen.exit.memory_peak_bytes or 0) if seen.exit else 0
    _say(
        f"{rung}: 2000M at once with a limit of 64Mi: {seen.signals.containers[0].reason} at {peak / MEBIBYTE:.0f} MiB"
    )


def _milliseconds(bench: Bench) -> float:
    began = time.perf_counter()
    bench.run("true", memory_bytes=LIMIT)
    return (time.perf_counter() - began) * 1000


def _cost(bench: Bench, seconds: float) -> tuple[float, int]:
    """The share of a core that a runner takes, and the memory that no other process shares with it."""
    given = bench.start(lease("sleep 8617", memory_bytes=LIMIT))
    bench.running(given)
    claim = bench.folder / "runs" / given.pod_name / "runner.json"
    pid = int(json.loads(claim.read_text())["pid"])
    before = _cpu_seconds(pid)
    time.sleep(seconds)
    share = (_cpu_seconds(pid) - before) / seconds
    return share, _private_bytes(pid)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _private_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
