"""Pods and their events as the case files write them, as signals."""

from collections.abc import Iterable
from typing import Any

from policies.failures import ContainerEnd, PodEvent

STATES = frozenset({"name", "terminated", "waiting", "running"})


def known(value: dict[str, Any], keys: Iterable[str]) -> None:
    """A key that nobody reads must never pass by being overlooked."""
    if surplus := set(value) - set(keys):
        raise KeyError(f"The runner does not know {sorted(surplus)}.")


def container_ends(pod: dict[str, Any]) -> tuple[ContainerEnd, ...]:
    """The containers that terminated; those that wait or run have not ended."""
    return (
        *_ends(pod.get("containers") or [], is_init=False),
        *_ends(pod.get("initContainers") or [], is_init=True),
    )


def pod_events(events: list[dict[str, Any]] | None) -> tuple[PodEvent, ...]:
    return tuple(
        PodEvent(type=event["type"], reason=event.get("reason") or "", message=event.get("message") or "")
        for event in events or []
    )


def _ends(containers: list[dict[str, Any]], *, is_init: bool) -> list[ContainerEnd]:
    for container in containers:
        known(container, STATES)
    return [
        ContainerEnd(
            name=container["name"],
            exit_code=container["terminated"]["exitCode"],
            reason=container["terminated"].get("reason") or "",
            message=container["terminated"].get("message") or "",
            is_init=is_init,
        )
        for container in containers
        if container.get("terminated") is not None
    ]
