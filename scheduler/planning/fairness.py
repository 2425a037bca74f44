"""Fair share: what part of a pool queues hold, and what part is theirs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.placement import NodeCapacity, Requirements

type Amounts = tuple[int, ...]
"""How much of each measured resource, in the order of their names."""


class Measure:
    """Amounts of the resources that shares and limits are about, and what part of the pool's they are."""

    def __init__(
        self, nodes: Iterable[NodeCapacity], *, shared: Iterable[str], limited: Iterable[str] = ()
    ) -> None:
        by_share = tuple(dict.fromkeys(shared))
        self._shared = len(by_share)
        self.resources = tuple(dict.fromkeys((*by_share, *sorted(limited))))
        """Names; those that shares are about come first."""
        self.nothing: Amounts = (0,) * len(self.resources)
        self.total = self.nothing
        self._known: dict[Requirements, Amounts] = {}
        for node in nodes:
            self.total = added(self.total, tuple(_of_node(node, name) for name in self.resources))

    def of(self, asked: Requirements) -> Amounts:
        """How much is asked of each."""
        found = self._known.get(asked)
        if found is None:
            by_name = dict(asked.resources, cpu=asked.cpu_millicores, memory=asked.memory_bytes)
            found = self._known[asked] = tuple(by_name.get(name, 0) for name in self.resources)
        return found

    def dominant_share(self, amounts: Amounts) -> float:
        """The largest part of the pool's that this is, of any resource that shares are about."""
        largest = 0.0
        for number in range(self._shared):
            if (total := self.total[number]) and (share := amounts[number] / total) > largest:
                largest = share
        return largest


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A queue's claim to the pool."""

    weight: float
    """1 / its priority factor."""
    demand: float
    """The part of the pool that it holds and waits for; it may be more than there is."""


def fair_shares(claims: Mapping[str, Claim]) -> dict[str, float]:
    """The part of the pool that is each queue's: by weight, and what one has no use for goes to the others by weight."""
    shares: dict[str, float] = {}
    left = 1.0
    rest = {name: claim for name, claim in claims.items() if claim.demand > 0.0}
    while rest:
        each = left / sum(claim.weight for claim in rest.values())
        content = [name for name, claim in rest.items() if claim.demand <= each * claim.weight]
        if not content:
            return shares | {name: each * claim.weight for name, claim in rest.items()}
        for name in content:
            shares[name] = rest.pop(name).demand
        left = max(0.0, 1.0 - sum(shares.values()))
    return shares


def added(amounts: Amounts, more: Amounts) -> Amounts:
    """Both together."""
    return tuple(map(int.__add__, amounts, more))


def reduced(amounts: Amounts, less: Amounts) -> Amounts:
    """The first without the second."""
    return tuple(map(int.__sub__, amounts, less))


def total_of(amounts: Sequence[Amounts], nothing: Amounts) -> Amounts:
    """All together."""
    return tuple(map(sum, zip(nothing, *amounts, strict=True)))


def _of_node(node: NodeCapacity, name: str) -> int:
    match name:
        case "cpu":
            return node.cpu_millicores
        case "memory":
            return node.memory_bytes
    return node.resources.get(name, 0)
