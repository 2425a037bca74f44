"""Obstacles: what keeps a job from a node, and the sentence for a job that meets one on every node."""

from collections import defaultdict
from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from policies.quantity import format_bytes, parse_bytes, rounded_bytes


class ObstacleKind(StrEnum):
    """What keeps a job from a node."""

    CLOSED = "closed"
    SELECTOR = "selector"
    AVOIDED = "avoided"
    CPU = "cpu"
    MEMORY = "memory"
    RESOURCE = "resource"
    AFFINITY = "affinity"
    TAINT = "taint"
    FIELD = "field"


class Obstacle(NamedTuple):
    """The thing to be told of that keeps a job from one node. A plan makes millions: hence a tuple."""

    kind: ObstacleKind
    name: str = ""
    """The label, resource, affinity, taint or field of the pod spec it is about, or why the node is closed."""
    wanted: int = 0
    found: int = 0


def why_nowhere(obstacles: Collection[Obstacle], *, free: bool) -> str:
    """The sentence for a job that met an obstacle on every node; `free` when it is about what is left now."""
    groups: dict[tuple[ObstacleKind, str], list[Obstacle]] = defaultdict(list)
    for obstacle in obstacles:
        groups[obstacle.kind, obstacle.name].append(obstacle)
    parts = [_part(group, free=free) for _, group in sorted(groups.items())]
    count = "The only node does not fit" if len(obstacles) == 1 else f"None of {len(obstacles)} nodes fits"
    return f"{count}: {'; '.join(parts)}."


def _part(group: Collection[Obstacle], *, free: bool) -> str:
    first = next(iter(group))
    one = len(group) == 1
    match first.kind:
        case ObstacleKind.CLOSED:
            return f"{len(group)} {'takes' if one else 'take'} no new runs{_in_brackets(first.name)}"
        case ObstacleKind.SELECTOR:
            return f"{len(group)} {'lacks' if one else 'lack'} the label {first.name}"
        case ObstacleKind.AVOIDED:
            return f"{len(group)} {'is' if one else 'are'} avoided after a failure there"
        case ObstacleKind.FIELD:
            return f"{len(group)} {'does' if one else 'do'} not act on {first.name}"
        case ObstacleKind.AFFINITY:
            has, is_not = ("has", "does") if one else ("have", "do")
            return f"{len(group)} {has} the room and {is_not} not match {first.name}"
        case ObstacleKind.TAINT:
            has, are = ("has", "is") if one else ("have", "are")
            return f"{len(group)} {has} the room and {are} tainted {first.name}"
    wanted, most = _amounts(first, first.wanted, max(obstacle.found for obstacle in group))
    has = f"{len(group)} {'has' if one else 'have'} less than {wanted}"
    return f"{has}{' free' if free else ''} ({most if one else f'at most {most}'})"


def _amounts(obstacle: Obstacle, wanted: int, found: int) -> tuple[str, str]:
    match obstacle.kind:
        case ObstacleKind.MEMORY:
            return _memory(wanted, found)
        case ObstacleKind.CPU:
            return f"{wanted / 1000:g} CPU", f"{found / 1000:g} CPU"
        case _:
            return f"{wanted} {obstacle.name}", f"{found} {obstacle.name}"


def _memory(wanted: int, found: int) -> tuple[str, str]:
    """Both rounded, as everywhere; exact where rounding would make them the same."""
    near = parse_bytes(rounded_bytes(wanted)) == parse_bytes(rounded_bytes(found))
    words = format_bytes if near else rounded_bytes
    return f"{words(wanted)} memory", f"{words(found)} memory"


def _in_brackets(sentence: str) -> str:
    return f" ({sentence[:1].lower()}{sentence[1:].rstrip('.')})" if sentence else ""
