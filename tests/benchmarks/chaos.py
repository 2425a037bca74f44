"""Kill everything, in turn and at random, while jobs with retries run: each ends as its script says, and nothing is lost.

SIGKILL to the supervisor (which is started again), the web, the worker, the schedule, PostgreSQL, the broker, the
agent, the process that starts runners, and runners. A killed runner costs its run (`internal`/`node-failure`) and a
retry; nothing else may cost anything.
"""

import argparse
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import yaml

from lookout.client import Busy, Client, Refused, TackError
from lookout.embedded.folders import Folders
from tests.benchmarks.scratch import CHECKOUT, DidNotStart
from tests.benchmarks.scripted_jobs import CATEGORIES, NotAsScripted, Scripted, check, make_queue, submitted
from tests.benchmarks.victims import Victims

START_SECONDS, STOP_SECONDS = 120.0, 60.0
PATIENCE_SECONDS = 240.0
"""For all jobs to end after the last kill: services that were killed often are started again after half a minute."""
_CONFIGURATION = {
    "scheduling": {
        "retryPolicy": {"enabled": True, "globalMaxRetries": 20},
        "indexedNodeLabels": ["kubernetes.io/hostname"],
        "maximumSchedulingRate": 0,
        "maximumPerQueueSchedulingRate": 0,
    },
    "application": {"errorCategories": CATEGORIES},
    "local": {"nodes": 2},
}


@dataclass(kw_only=True)
class Tack:
    """A Tack that is started again when it was killed, at the same address."""

    folder: Path
    port: int
    up: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def var(self) -> Path:
        return self.folder / "var"

    def start(self) -> None:
        """Start it, or start it again. Returns at once."""
        command = [sys.executable, "-P", "-m", "lookout.embedded", "--no-story", "--port", str(self.port)]
        self.starts += 1
        with (self.folder / "log").open("ab") as log:
            self.up = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**_inherited(), "PYTHONPATH": str(CHECKOUT), "TACK_VAR": str(self.var)},
                start_new_session=True,
            )

    def keep_up(self) -> None:
        """Start it again when it is gone."""
        if self.up is None or self.up.poll() is not None:
            self.start()

    def client(self) -> Client:
        return Client.from_environment(token_file=self.var / "token")

    def persist[T](self, call: Callable[[Client], T], *, seconds: float = START_SECONDS) -> T:
        """What the call gives, as soon as Tack is there to answer it."""
        deadline = time.monotonic() + seconds
        while True:
            self.keep_up()
            with suppress(OSError):
                try:
                    with self.client() as client:
                        return call(client)
                except TackError as error:
                    if isinstance(error, Refused) and not isinstance(error, Busy):
                        raise
            if time.monotonic() > deadline:
                raise DidNotStart(self._last_words())
            time.sleep(0.1)

    def stop(self) -> int:
        """As Ctrl-C does; the exit code."""
        assert self.up is not None
        with suppress(subprocess.TimeoutExpired):
            self.up.send_signal(signal.SIGINT)
            self.up.wait(STOP_SECONDS)
        if self.up.poll() is None:
            self.up.kill()
        return self.up.wait()

    def _last_words(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2_000:]


@dataclass(kw_only=True)
class Chaos:
    """What was killed, what ran, and how it ended."""

    killed: Counter[str] = field(default_factory=Counter)
    jobs: list[Scripted] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@contextmanager
def killable_tack() -> Iterator[Tack]:
    """A Tack of two local nodes in a folder that jobs of any user can reach, gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="tack-chaos-"))
    folder.chmod(0o755)
    tack = Tack(folder=folder, port=_free_port())
    tack.var.mkdir(mode=0o700)
    (tack.var / "tack.yaml").write_text(yaml.safe_dump(_CONFIGURATION))
    try:
        tack.start()
        yield tack
    finally:
        tack.stop()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(Folders(var=tack.var).runs, ignore_errors=True)


def play(
    tack: Tack, *, jobs: int, kills: int, pause: float, chance: random.Random, say: Callable[[str], None]
) -> Chaos:
    """Submit the jobs in portions, kill between them, wait for all to end, and check. Raises NotAsScripted."""
    chaos = Chaos()
    began = time.monotonic()
    tack.persist(lambda client: None if client.executors() else _not_yet())
    tack.persist(make_queue)
    victims = Victims(tack.var, chance)
    portions = _portions(jobs, max(1, kills))
    for kill in range(max(1, kills)):
        _submit(tack, chaos, portions[kill])
        time.sleep(chance.uniform(0.5, 1.5) * pause)
        if kills:
            _kill(victims, chaos, _turn(victims, kill, chance), say)
        tack.keep_up()
    _wait_for_the_end(tack, chaos)
    chaos.ends = tack.persist(lambda client: check(client, chaos.jobs))
    _check_cost(chaos)
    _check_remains(tack)
    chaos.seconds = time.monotonic() - began
    return chaos


def _portions(jobs: int, parts: int) -> list[range]:
    edges = [jobs * part // parts for part in range(parts + 1)]
    return [range(*edge) for edge in pairwise(edges)]


def _submit(tack: Tack, chaos: Chaos, numbers: range) -> None:
    if numbers:
        shared = tack.folder / "jobs"
        chaos.jobs += tack.persist(
            lambda client: submitted(client, shared, first=numbers.start, jobs=len(numbers), seconds=0.5)
        )


def _turn(victims: Victims, kill: int, chance: random.Random) -> str:
    """Each kind once, then whichever."""
    kinds = list(victims.kinds)
    return kinds[kill] if kill < len(kinds) else chance.choice(kinds)


def _kill(victims: Victims, chaos: Chaos, kind: str, say: Callable[[str], None]) -> None:
    """Kill one of the kind; what is just being started again is waited for."""
    deadline = time.monotonic() + 5.0
    while not victims.kill(kind):
        if time.monotonic() > deadline:
            say(f"    -  {kind}: none to be found")
            return
        time.sleep(0.02)
    chaos.killed[kind] += 1
    say(f"{chaos.killed.total():5}  {kind}")


def _wait_for_the_end(tack: Tack, chaos: Chaos) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    open_jobs = [job.job_id for job in chaos.jobs]
    while open_jobs:
        asked = open_jobs[:100]
        found = tack.persist(lambda client, asked=asked: list(client.jobs(ids=asked)))  # type: ignore[misc]
        ended = {job.job_id for job in found if job.has_ended}
        open_jobs = [each for each in open_jobs if each not in ended]
        if time.monotonic() > deadline:
            states = Counter(f"{job.state} {job.waiting_because}" for job in found)
            raise NotAsScripted(f"{len(open_jobs)} jobs have not ended: {dict(states)}")
        if not ended:
            time.sleep(0.2)


def _check_cost(chaos: Chaos) -> None:
    lost = sum(count for end, count in chaos.ends.items() if end.endswith("node-failure"))
    if lost > chaos.killed["runner"]:
        raise NotAsScripted(f"{chaos.killed['runner']} runners were killed, and {lost} runs were lost.")


def _check_remains(tack: Tack) -> None:
    """Nothing here is retained: every folder goes, sooner or later."""
    deadline = time.monotonic() + 30.0
    while left := sorted(each.name for each in Folders(var=tack.var).runs.glob("armada-*")):
        if time.monotonic() > deadline:
            raise NotAsScripted(f"The remains of {len(left)} runs are still there: {', '.join(left[:5])}")
        time.sleep(0.1)


def _inherited() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "USER")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _not_yet() -> None:
    raise OSError("no executor was heard of yet")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(arguments: Sequence[str]) -> int:
    """Play and print. The exit code: 0 when every job ended as scripted, 1 when not, 2 when it could not be played."""
    options = _parse(arguments)
    chance = random.Random(options.seed)  # noqa: S311 - to be had again by its seed
    _say(f"{options.jobs} jobs, {options.kills} kills, seed {options.seed}")
    with killable_tack() as tack:
        try:
            chaos = play(
                tack, jobs=options.jobs, kills=options.kills, pause=options.pause, chance=chance, say=_say
            )
        except (NotAsScripted, DidNotStart, TackError) as error:
            if options.keep:
                kept = shutil.copytree(
                    tack.folder, f"{tack.folder}-kept", ignore=shutil.ignore_patterns("run", "bell")
                )
                _say(f"Its folder is kept as {kept}.")
            _say(f"not as scripted:\n{error}")
            return 1 if isinstance(error, NotAsScripted) else 2
    _say(
        f"{len(chaos.jobs)} jobs ended as their scripts say, after {chaos.ends.total()} runs, in {chaos.seconds:.0f} s."
    )
    for what, counts in (("killed", chaos.killed), ("runs", chaos.ends)):
        _say(f"{what}: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack bench chaos", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=36, help="how many (%(default)s)")
    parser.add_argument("--jobs", type=int, default=200, help="how many, over the whole of it (%(default)s)")
    parser.add_argument(
        "--pause", type=float, default=1.5, help="seconds between kills, on average (%(default)s)"
    )
    parser.add_argument("--seed", default=secrets.token_hex(3), help="to have the same choices again")
    parser.add_argument("--keep", action="store_true", help="keep a copy of the folder when it fails")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
