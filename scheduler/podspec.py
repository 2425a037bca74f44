"""Pod specs as jobs bring them: checked field by field, and what the scheduler has to know of one."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from policies.fields import suggestion, unknown_field
from policies.pods import PodResources, pod_resources
from policies.quantity import MAX_QUANTITY, QuantityError, parse_quantity
from scheduler.affinity import AFFINITY_SHAPE, TOLERATION_SHAPE, Term, read_affinity, read_tolerations
from scheduler.executors.protocol import needed_fields
from scheduler.fields import Fields, kind_of, problem_of_line
from scheduler.spelling import FREE, Problems, Shape, below

MAX_SPEC_BYTES = 65_535
"""Of one pod spec as JSON; the model's limit."""
MAX_CONTAINERS = 50
MAX_ENTRIES = 256
DEFAULT_GRACE_SECONDS = 30
MAX_FIELD_CHARACTERS = 16_384
"""Of the paths of all fields that not every executor acts on."""
READ_BY_THE_SCHEDULER = ("spec.nodeSelector", "spec.affinity", "spec.tolerations", "spec.priorityClassName")
"""Fields that no executor has to act on."""

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAME_SAYS = "lower-case letters, digits and dashes, beginning and ending with a letter or digit, at most 63"
_MEASURED = ("cpu", "memory", "storage", "ephemeral-storage")

_CONTAINER: Shape = {
    "name": FREE,
    "image": FREE,
    "command": FREE,
    "args": FREE,
    "workingDir": FREE,
    "env": {"name": FREE, "value": FREE, "valueFrom": FREE},
    "resources": {"requests": FREE, "limits": FREE},
    "restartPolicy": FREE,
    "volumeMounts": {"name": FREE, "mountPath": FREE, "readOnly": FREE, "subPath": FREE},
}
POD_SHAPE: Shape = {
    "activeDeadlineSeconds": FREE,
    "affinity": AFFINITY_SHAPE,
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "nodeSelector": FREE,
    "priorityClassName": FREE,
    "restartPolicy": FREE,
    "terminationGracePeriodSeconds": FREE,
    "tolerations": TOLERATION_SHAPE,
    "volumes": {"name": FREE, "emptyDir": {"medium": FREE, "sizeLimit": FREE}},
}
"""Fields whose letter case is forgiven. Others are kept as they are: an executor may honour them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pod:
    """A pod spec and what is reserved for it. Memory in bytes, CPU in millicores, all else in whole units."""

    spec: dict[str, Any]
    """As submitted, with the defaults Kubernetes gives: a request that is absent equals its limit."""
    cpu_request_millicores: int = 0
    memory_request_bytes: int | None = None
    memory_limit_bytes: int | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    """Requests of other resources by name."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Sequence[Term] = ()
    """Required node affinity, any of the terms."""
    tolerations: Sequence[Mapping[str, str]] = ()
    priority_class: str = ""
    """As written; empty for the default."""
    needed_fields: Sequence[str] = ()
    """Paths of the fields that not every executor acts on."""
    grace_period_seconds: int = DEFAULT_GRACE_SECONDS


def read_pod(spec: dict[str, Any], path: str, problems: Problems) -> Pod:
    """Check a spec whose field names are spelled right, noting every problem. Fills in requests."""
    pod = Fields(spec, path, problems)
    _note_misspelled(spec, POD_SHAPE, path, problems)
    if pod.take("restartPolicy") not in (None, "", "Never"):
        pod.note("restartPolicy", "Must be Never or absent: retry policies decide what runs again.")
    pod.whole("activeDeadlineSeconds", least=1)
    grace = pod.whole("terminationGracePeriodSeconds", default=DEFAULT_GRACE_SECONDS)
    asked = Pod(
        spec=spec,
        grace_period_seconds=grace,
        node_selector=text_map(pod, "nodeSelector", longest=63),
        affinity=read_affinity(pod),
        tolerations=read_tolerations(pod),
        priority_class=pod.text("priorityClassName", most=253),
    )
    _read_containers(pod, _read_volumes(pod))
    if len(json.dumps(spec, ensure_ascii=False).encode()) > MAX_SPEC_BYTES:
        pod.note("", f"Is larger than {MAX_SPEC_BYTES:,} bytes. Put scripts and data elsewhere.", "too_large")
    return asked if problems.found else _with_totals(asked, pod)


def _note_misspelled(value: object, shape: Shape, path: str, problems: Problems) -> None:
    """Fields that are nearly one of the shape which is not there. Others may mean something to an executor."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            _note_misspelled(item, shape, below(path, index), problems)
    elif isinstance(value, dict) and shape:
        absent = [name for name in shape if name not in value]
        for key, item in value.items():
            if key in shape:
                _note_misspelled(item, shape[key], below(path, key), problems)
            elif suggestion(key, absent):
                problems.add(below(path, key), unknown_field(key, absent), "unknown_field")


def text_map(fields: Fields, name: str, *, longest: int) -> dict[str, str]:
    """Labels and the like: keys to lines of text."""
    found = {}
    for key, value in fields.entries(name, most=MAX_ENTRIES).items():
        problem = problem_of_line(key, most=317) if key else "A key must not be empty."
        problem = problem or problem_of_line(value, most=longest)
        if problem:
            fields.problems.add(below(below(fields.path, name), key), problem)
        else:
            found[key] = value
    return found


def _read_volumes(pod: Fields) -> set[str]:
    names: set[str] = set()
    for path, value in pod.each("volumes", most=MAX_ENTRIES):
        volume = Fields(value, path, pod.problems)
        name = volume.text("name", most=63, required=True, pattern=NAME, says=NAME_SAYS)
        if name in names:
            volume.note("name", f"There are two volumes '{name}'. Rename one.", "duplicate")
        names.add(name)
        empty = Fields(volume.take("emptyDir"), below(path, "emptyDir"), pod.problems)
        if empty.take("medium") not in (None, "", "Memory"):
            empty.note("medium", "Takes Memory, or is left out.")
        limit = empty.take("sizeLimit")
        if limit is not None:
            _amount("sizeLimit", limit, below(empty.path, "sizeLimit"), pod.problems)
    return names


def _read_containers(pod: Fields, volumes: set[str]) -> None:
    inits = pod.each("initContainers", most=MAX_CONTAINERS)
    mains = pod.each("containers", most=MAX_CONTAINERS, required=True)
    names: set[str] = set()
    for path, value in [*mains, *inits]:
        container = Fields(value, path, pod.problems)
        name = container.text("name", most=63, required=True, pattern=NAME, says=NAME_SAYS)
        if name and name in names:
            container.note("name", f"There are two containers '{name}'. Rename one.", "duplicate")
        names.add(name)
        _read_container(container, volumes)
    for path, value in inits:
        if Fields(value, path, Problems()).take("restartPolicy") not in (None, "Always"):
            pod.problems.add(below(path, "restartPolicy"), "Must be Always (a sidecar) or absent.")


def _read_container(container: Fields, volumes: set[str]) -> None:
    container.text("image", most=4_096)
    container.text("workingDir", most=4_096)
    container.texts("command", most=4_096)
    container.texts("args", most=4_096)
    for path, value in container.each("env", most=MAX_ENTRIES):
        _read_variable(Fields(value, path, container.problems))
    for path, value in container.each("volumeMounts", most=MAX_ENTRIES):
        mount = Fields(value, path, container.problems)
        name = mount.text("name", most=63, required=True)
        if name and name not in volumes:
            mount.note("name", f"There is no volume '{name}' in this pod. Add it under volumes.")
        if not mount.text("mountPath", most=4_096, required=True).startswith("/"):
            mount.note("mountPath", "Takes a path that begins with a slash.")
    _read_resources(container)


def _read_variable(variable: Fields) -> None:
    name = variable.text("name", most=1_024, required=True)
    if "=" in name:
        variable.note("name", "The name of a variable must not hold an equals sign.")
    value = variable.take("value")
    if value is not None and not isinstance(value, str):
        variable.note("value", f"Takes text, not {kind_of(value)}. Quote it.", "type")


def _read_resources(container: Fields) -> None:
    """Amounts become text, requests that are absent equal their limits; a request must not exceed its limit."""
    given = container.entries("resources")
    resources = Fields(given, below(container.path, "resources"), container.problems)
    requested = _read_amounts(resources, "requests")
    limited = _read_amounts(resources, "limits")
    for name, limit in limited.items():
        if name not in requested:
            if not isinstance(given.get("requests"), dict):
                given["requests"] = {}
            given["requests"][name] = given["limits"][name]
        elif requested[name] > limit:
            message = f"The request of {name} is above its limit. Lower it, or raise the limit."
            container.problems.add(below(below(resources.path, "requests"), name), message)


def _read_amounts(resources: Fields, kind: str) -> dict[str, Fraction]:
    block = resources.entries(kind, most=MAX_ENTRIES)
    exact = {}
    for name in [name for name, written in block.items() if written is None]:
        del block[name]
    for name, written in block.items():
        path = below(below(resources.path, kind), name)
        if not name or problem_of_line(name, most=317):
            resources.problems.add(path, "Is not the name of a resource.")
            continue
        amount = _amount(name, written, path, resources.problems)
        if amount is not None:
            exact[name] = amount
            block[name] = _as_text(written)
    return exact


def _amount(name: str, written: object, path: str, problems: Problems) -> Fraction | None:
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        problems.add(path, f"Takes a quantity such as 500m or 64Mi, not {kind_of(written)}.", "type")
        return None
    try:
        amount = parse_quantity(_as_text(written))
    except QuantityError as error:
        problems.add(path, str(error), "quantity")
        return None
    if amount < 0:
        problems.add(path, "Must not be negative.", "range")
    elif amount.denominator != 1 and _is_counted(name):
        problems.add(path, f"{name} is counted in whole pieces.", "range")
    else:
        return amount
    return None


def _is_counted(name: str) -> bool:
    return name not in (*_MEASURED, "sizeLimit") and not name.startswith("hugepages-")


def _as_text(written: object) -> str:
    return format(Decimal(repr(written)), "f") if isinstance(written, float) else str(written)


def _with_totals(asked: Pod, pod: Fields) -> Pod:
    totals = pod_resources(asked.spec)
    millicores = math.ceil(totals.requests.get("cpu", 0) * 1000)
    others = {
        name: math.ceil(amount) for name, amount in totals.requests.items() if name not in ("cpu", "memory")
    }
    if _largest(totals, millicores) > MAX_QUANTITY:
        pod.note("containers", "The resources of the containers add up to more than can be counted.", "range")
    fields = needed_fields(asked.spec, READ_BY_THE_SCHEDULER)
    if sum(map(len, fields)) > MAX_FIELD_CHARACTERS:
        pod.note("", "Sets more fields of its own than an executor could know. Leave some out.", "too_large")
    return replace(
        asked,
        needed_fields=fields,
        cpu_request_millicores=millicores,
        memory_request_bytes=totals.memory_request_bytes,
        memory_limit_bytes=totals.memory_limit_bytes,
        resources=others,
    )


def _largest(totals: PodResources, millicores: int) -> Fraction:
    return max([Fraction(millicores), *totals.requests.values(), *totals.limits.values()])
