"""Limits: how much of a pool one queue's jobs of a priority class may hold."""

from collections.abc import Mapping, Sequence

from policies.quantity import rounded_bytes
from scheduler.planning.fairness import Amounts, Measure
from scheduler.planning.lines import Line


class ClassLimits:
    """For each priority class with limits, the most that one queue's jobs of it may hold."""

    def __init__(self, limits: Mapping[str, Mapping[str, float]], measure: Measure) -> None:
        self._measure = measure
        self._most = {
            name: [
                (number, fractions[resource])
                for number, resource in enumerate(measure.resources)
                if resource in fractions
            ]
            for name, fractions in limits.items()
        }

    def exceeded(self, line: Line, priority_class: str, asked: Sequence[Amounts]) -> str:
        """Why jobs that ask so much would be too much for the queue's of the class; empty where they would not."""
        for number, fraction in self._most.get(priority_class, ()):
            held, most = line.of_class(priority_class)[number], fraction * self._measure.total[number]
            more = sum(each[number] for each in asked)
            if more and held + more > most:
                return self._sentence(line.name, priority_class, number, held=held, fraction=fraction)
        return ""

    def _sentence(self, queue: str, priority_class: str, number: int, *, held: int, fraction: float) -> str:
        resource, total = self._measure.resources[number], self._measure.total[number]
        return (
            f"Queue {queue} may hold {100 * fraction:.4g}% of the pool's {_name(resource)} with jobs of the priority class "
            f"{priority_class} ({_amount(resource, int(fraction * total))}), and holds {_amount(resource, held)}."
        )


def _name(resource: str) -> str:
    return "CPU" if resource == "cpu" else resource


def _amount(resource: str, amount: int) -> str:
    match resource:
        case "cpu":
            return f"{amount / 1000:g} CPU"
        case "memory":
            return f"{rounded_bytes(amount)} memory"
    return f"{amount} {resource}"
