"""Moments whose age can still be told after a restart of the program or the machine. Standard library only."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.executors.processes import boot_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Instant:
    """A moment by two clocks: one that is steady but starts anew with the machine, and the wall's."""

    boot: str
    seconds: float
    wall: float

    @classmethod
    def now(cls) -> "Instant":
        """This moment."""
        return cls(boot=boot_id(), seconds=time.clock_gettime(time.CLOCK_BOOTTIME), wall=time.time())

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Instant":
        """What `as_json` gave."""
        return cls(boot=str(value["boot"]), seconds=float(value["seconds"]), wall=float(value["wall"]))

    def as_json(self) -> dict[str, Any]:
        """For files that outlive the program."""
        return {"boot": self.boot, "seconds": self.seconds, "wall": self.wall}

    def age(self, now: "Instant | None" = None) -> float:
        """Seconds since then, never negative. Only across a restart of the machine is the wall's clock trusted."""
        now = now or Instant.now()
        since = now.seconds - self.seconds if now.boot == self.boot else now.wall - self.wall
        return max(0.0, since)
