"""`local.nodes` of the configuration file: how many nodes the local executor declares, or what each of them has."""

from collections.abc import Mapping
from typing import Any

from policies.quantity import MAX_QUANTITY, QuantityError, parse_bytes, parse_millicores
from scheduler.executors.protocol import TaintDescription, TaintEffect
from scheduler.executors.slices import Slice
from scheduler.fields import problem_of_line
from scheduler.keys import LONGEST_NAME, Keys, amount, name_of_at_most, whole

MOST_NODES = 1_000
MOST_TAINTS = 100
MOST_LABELS = 1_000
LONGEST_LABEL = 253
DEFAULT_NODES = (Slice(), Slice())


def read_nodes(local: Keys) -> tuple[Slice, ...]:
    """A number of equal nodes, or a list with what each has."""
    listed = local.listed("nodes", most=MOST_NODES)
    if listed:
        return tuple(_slice(keys) for keys in listed)
    return (Slice(),) * local.take("nodes", whole(1, MOST_NODES), len(DEFAULT_NODES))


def _slice(keys: Keys) -> Slice:
    return Slice(
        cpu_millicores=keys.take("cpu", amount(parse_millicores), 0),
        memory_bytes=keys.take("memory", amount(parse_bytes), 0),
        labels=keys.take("labels", _labels, {}),
        taints=tuple(_taint(taint) for taint in keys.listed("taints", most=MOST_TAINTS)),
        resources=keys.take("resources", _resources, {}),
    )


def _taint(keys: Keys) -> TaintDescription:
    return TaintDescription(
        key=keys.take("key", name_of_at_most(LONGEST_NAME), ""),
        value=keys.take("value", _value, ""),
        effect=keys.take("effect", _effect, TaintEffect.NO_SCHEDULE),
    )


def _value(value: Any) -> str:
    if problem_of_line(value, most=LONGEST_LABEL):
        raise ValueError(f"takes a line of text of at most {LONGEST_LABEL} characters; quote numbers")
    return str(value)


def _effect(value: Any) -> TaintEffect:
    if value not in list(TaintEffect):
        raise ValueError(f"takes one of {', '.join(TaintEffect)}")
    return TaintEffect(value)


def _labels(value: Any) -> Mapping[str, str]:
    _require_names(value, "labels by name, such as {zone: a}")
    return {str(key): _value(each) for key, each in value.items()}


def _resources(value: Any) -> Mapping[str, int]:
    _require_names(value, "resources by name, such as {nvidia.com/gpu: 1}")
    try:
        found = {str(key): parse_bytes(str(each)) for key, each in value.items()}
    except QuantityError as error:
        raise ValueError("takes an amount of each resource") from error
    if any(not 0 <= each <= MAX_QUANTITY for each in found.values()):
        raise ValueError("takes amounts that a machine could have")
    return found


def _require_names(value: Any, what: str) -> None:
    if (
        not isinstance(value, Mapping)
        or len(value) > MOST_LABELS
        or any(not key or problem_of_line(key, most=LONGEST_NAME) for key in value)
    ):
        raise ValueError(f"takes {what}")
