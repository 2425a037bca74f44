"""Keep services running: start them in order, start again what ends, stop them in the opposite order.

Everything happens in the main thread, because Linux ends our children with the thread that started them.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lookout.embedded import leftovers
from lookout.embedded.children import end, tell_to_end
from lookout.embedded.files import set_aside
from lookout.embedded.folders import free_mb, full_disk_sentence
from lookout.embedded.progress import tell

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_LITTLE_ROOM_MB = 50
_HURRIED_GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One process of Tack: how it starts, how long it may take to end, and how it is told to."""

    name: str
    log: Path
    start: Callable[[], subprocess.Popen[bytes]]
    grace_seconds: float
    stage: int = 0
    """What has a higher one needs what has a lower one, so it is stopped before."""
    stop_signal: signal.Signals = signal.SIGTERM
    once: bool = False
    """Whether it may end by itself, and is not started again then."""


@dataclass(slots=True, kw_only=True)
class _Watched:
    service: Service
    child: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    pause_seconds: float = _FIRST_PAUSE_SECONDS
    start_again_at: float | None = None


class Supervisor:
    """The services of one Tack. `register` is the file that names them for the start after a killed one."""

    def __init__(self, register: Path) -> None:
        self._register = register
        self._watched: list[_Watched] = []

    def start(self, service: Service) -> subprocess.Popen[bytes]:
        """Start a service; what `service.start` raises travels up."""
        set_aside(service.log)
        child = service.start()
        self._watched.append(_Watched(service=service, child=child))
        self._remember()
        return child

    def look_after_all_but(self, *starting: Service) -> None:
        """Start again what has ended, but for services that have not shown yet that they can start at all."""
        for watched in [each for each in self._watched if each.service not in starting]:
            self._look_after(watched)

    def watch(self) -> None:
        """Start again whatever ends, sooner or later by how often it did. Runs until KeyboardInterrupt."""
        with _wakened_by_signals() as bell:
            while True:
                for watched in list(self._watched):
                    self._look_after(watched)
                _wait(bell, self._seconds_to_the_next_start())

    def stop(self, around_each: Callable[[str], AbstractContextManager[None]]) -> None:
        """Stop everything, the highest stage first, all of a stage together, each within its grace.

        Ctrl-C during that tells them again with a short grace; from the third on there is none.
        """
        times_asked = 1
        # What waits to be started again ended a while ago; by now its number may be that of a stranger.
        self._watched = [watched for watched in self._watched if watched.start_again_at is None]
        while self._watched:
            stage = max(watched.service.stage for watched in self._watched)
            leaving = [watched for watched in self._watched if watched.service.stage == stage]
            try:
                for watched in leaving:
                    tell_to_end(watched.child, watched.service.stop_signal)
                for watched in leaving:
                    with around_each(watched.service.name):
                        end(watched.child, grace_seconds=_grace_seconds(watched.service, times_asked))
                    self._watched.remove(watched)
            except KeyboardInterrupt:
                times_asked += 1
        self._register.unlink(missing_ok=True)

    def _look_after(self, watched: _Watched) -> None:
        code = watched.child.poll()
        if code is None:
            return
        if watched.service.once:
            self._watched.remove(watched)
            return
        now = time.monotonic()
        if watched.start_again_at is None:
            if now - watched.started > _STEADY_SECONDS:
                watched.pause_seconds = _FIRST_PAUSE_SECONDS
            watched.start_again_at = now + watched.pause_seconds
            _tell_of_the_end(watched, code)
            end(watched.child, grace_seconds=0)  # what it had started, and left behind
        elif now >= watched.start_again_at:
            self._start_again(watched)

    def _start_again(self, watched: _Watched) -> None:
        watched.pause_seconds = min(watched.pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
        watched.start_again_at = None
        watched.started = time.monotonic()
        set_aside(watched.service.log)
        try:
            watched.child = watched.service.start()
        except (RuntimeError, OSError) as error:
            tell(f"{watched.service.name} does not start again: {error}")
            watched.start_again_at = time.monotonic() + watched.pause_seconds
            return
        self._remember()

    def _seconds_to_the_next_start(self) -> float:
        due = [watched.start_again_at for watched in self._watched if watched.start_again_at is not None]
        # Without a due start the wait is for the signal of an ended child; the minute is for lost signals.
        return max(0.0, min(due) - time.monotonic()) if due else 60.0

    def _remember(self) -> None:
        with suppress(OSError):  # a full disk must not keep services from being started again
            leftovers.remember(
                self._register, {watched.service.name: watched.child.pid for watched in self._watched}
            )


def _grace_seconds(service: Service, times_asked: int) -> float:
    if times_asked == 1:
        return service.grace_seconds
    return min(service.grace_seconds, _HURRIED_GRACE_SECONDS) if times_asked == 2 else 0.0


def _tell_of_the_end(watched: _Watched, code: int) -> None:
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    tell(
        f"{watched.service.name} {how}; it starts again in {watched.pause_seconds:g} s. "
        f"What it said is in {watched.service.log}."
    )
    if free_mb(watched.service.log.parent) < _LITTLE_ROOM_MB:
        tell(full_disk_sentence(watched.service.log.parent))


@contextmanager
def _wakened_by_signals() -> Iterator[int]:
    """A file descriptor that becomes readable when a child ends."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    earlier = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(earlier)
        signal.signal(signal.SIGCHLD, before)
        os.close(reading)
        os.close(writing)


def _wait(bell: int, seconds: float) -> None:
    ready, _, _ = select.select([bell], [], [], seconds)
    if ready:
        with suppress(BlockingIOError):
            os.read(bell, 4096)
