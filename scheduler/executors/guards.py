"""Guards watch a run's memory while it lives: control groups, or a poller. Standard library only."""

import select
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from scheduler.executors.containers import Container
from scheduler.executors.memory import Groups, groups_of
from scheduler.executors.processes import Tree, memory_of

POLL_SECONDS = 0.010
_REFRESH_SECONDS = 1.0


class Guard(Protocol):
    """Watches, and ends what is over its limit or left over."""

    interval: float | None
    """How often `over_limit` wants to be asked, beyond the descriptors; None: only after an end."""

    def descriptors(self) -> list[tuple[int, int]]:
        """Descriptors to poll, with the events that mean: ask `over_limit`."""

    def over_limit(self) -> Sequence[Container]:
        """Containers that used more than they may."""

    def peak_bytes(self) -> int | None:
        """The most the run has used."""

    def kill(self, container: Container | None = None) -> bool:
        """Send SIGKILL to all, or all of one container. False when there is nothing left to kill."""


def guard_for(
    enforced_by: str, group: Path | None, containers: Sequence[Container], limit_bytes: int
) -> Guard:
    """The guard of a rung; divides the run's group among the containers."""
    groups = groups_of(enforced_by)
    if groups is not None and group is not None:
        return GroupGuard(groups, group, containers)
    return PollGuard(containers, limit_bytes)


class GroupGuard:
    """The kernel holds the limit; this one notices and ends the rest."""

    def __init__(self, groups: Groups, group: Path, containers: Sequence[Container]) -> None:
        self._groups = groups
        self._group = group
        self._containers = containers
        self._tree = Tree()
        names = [f"container-{index}" for index in range(len(containers))]
        made = groups.divide(group, names, [container.memory_bytes for container in containers])
        for container, inside in zip(containers, made, strict=True):
            container.group = inside
        self._bells = [bell for inside in made if (bell := groups.watch(inside)) is not None]
        # The bell may ring just before the kill is counted, so look again now and then in any case.
        self.interval: float | None = 0.25 if len(self._bells) == len(made) else 0.05

    def descriptors(self) -> list[tuple[int, int]]:
        events = select.POLLPRI if self._groups.watch_is_priority else select.POLLIN
        return [(bell, events) for bell in self._bells]

    def over_limit(self) -> list[Container]:
        return [each for each in self._containers if each.group and self._groups.oom_kills(each.group)]

    def peak_bytes(self) -> int | None:
        return self._groups.peak_bytes(self._group)

    def kill(self, container: Container | None = None) -> bool:
        group = container.group if container is not None else self._group
        if group is not None:
            self._groups.kill(group)
        # What lost its way out of the group (it takes rights a job has not) is still below the runner.
        return container is not None or self._tree.signal(signal.SIGKILL)


class PollGuard:
    """Adds up what the processes hold. Pages that processes share are counted in each of them."""

    interval: float | None = POLL_SECONDS

    def __init__(self, containers: Sequence[Container], limit_bytes: int) -> None:
        self._containers = containers
        self._limit = limit_bytes
        self._tree = Tree()
        self._peak = 0
        self._refreshed = 0.0

    def descriptors(self) -> list[tuple[int, int]]:
        return []

    def over_limit(self) -> list[Container]:
        shares = self._measure()
        total, highest = (
            sum(now for now, _ in shares.values()),
            max((most for _, most in shares.values()), default=0),
        )
        self._peak = max(self._peak, total, highest)
        over = [
            each
            for each in self._containers
            if each.pid in shares and 0 < each.memory_bytes < max(shares[each.pid])
        ]
        if not over and 0 < self._limit < max(total, highest):
            over = sorted(self._containers, key=lambda each: shares.get(each.pid or 0, (0, 0)), reverse=True)[
                :1
            ]
        return over

    def peak_bytes(self) -> int | None:
        return self._peak or None

    def kill(self, container: Container | None = None) -> bool:
        return self._tree.signal(signal.SIGKILL, top=container.pid if container is not None else None)

    def _measure(self) -> dict[int, tuple[int, int]]:
        """Per top: bytes now, and the most that any one of its processes ever held."""
        fresh = time.monotonic() - self._refreshed > _REFRESH_SECONDS
        if fresh:
            self._refreshed = time.monotonic()
        shares: dict[int, tuple[int, int]] = {}
        for pid, top in self._tree.look(fresh=fresh).items():
            now, most = memory_of(pid)
            held, highest = shares.get(top, (0, 0))
            shares[top] = (held + now, max(highest, most))
        return shares
