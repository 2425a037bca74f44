"""Victims: what leaves a node so that a job fits onto it, as little and as cheap as will do."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from scheduler.placement import Requirements
from scheduler.planning.occupants import Occupant
from scheduler.planning.rooms import Room


def victims_on(
    room: Room,
    wanted: Requirements,
    occupants: Iterable[Occupant],
    *,
    allows: Callable[[Occupant], bool] = lambda _: True,
) -> list[Occupant] | None:
    """The first of the occupants that help and may leave, until the job fits; None where it does not even then."""
    missing = room.missing(wanted)
    chosen = []
    for occupant in occupants:
        if not missing:
            break
        held = held_on(room, occupant)
        if any(held.get(name) for name in missing) and allows(occupant):
            chosen.append(occupant)
            rest = {name: amount - held.get(name, 0) for name, amount in missing.items()}
            missing = {name: amount for name, amount in rest.items() if amount > 0}
    return None if missing else chosen


def held_on(room: Room, occupant: Occupant) -> dict[str, int]:
    """What is held of one node, by resource."""
    found: dict[str, int] = defaultdict(int)
    for at, held in occupant.parts:
        if at is room:
            found["cpu"] += held.cpu_millicores
            found["memory"] += held.memory_bytes
            for name, amount in held.resources:
                found[name] += amount
    return found
