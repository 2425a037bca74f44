"""The signals of an end: the raw facts an executor saw when a run ended, and the texts made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = [
    "ContainerEnd",
    "PodEvent",
    "Signals",
    "failure_text",
    "kubernetes_reason",
    "reported_message",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerEnd:
    """One container that terminated. `reason` is Kubernetes' word for it, such as OOMKilled or Error."""

    name: str
    exit_code: int
    reason: str = ""
    message: str = ""
    is_init: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PodEvent:
    """One event about the pod. `type` is Normal or Warning."""

    type: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """All that is known about an end.

    `message` is the pod-level message, the text that `onPodError` rules search; `reason` is the pod's status reason.
    """

    containers: tuple[ContainerEnd, ...] = ()
    message: str = ""
    reason: str = ""
    events: tuple[PodEvent, ...] = ()

    @property
    def failed_containers(self) -> tuple[ContainerEnd, ...]:
        """Containers that ended with another code than zero, main ones first; matchers see no others."""
        failed = [end for end in self.containers if end.exit_code != 0]
        return tuple(sorted(failed, key=lambda end: end.is_init))

    def with_failure_text(self) -> Signals:
        """The same signals, with the failure text as message. This is what a failed run is classified by."""
        return replace(self, message=failure_text(self))


def failure_text(signals: Signals) -> str:
    """What is reported as the message of a failed run: the pod's own message, else a line per failed container."""
    if signals.message:
        return signals.message
    return "".join(
        f"Container {end.name} failed with exit code {end.exit_code} because {end.reason}: {end.message}\n"
        for end in signals.failed_containers
    )


def kubernetes_reason(signals: Signals) -> str:
    """The cause in the model's four words: Evicted, DeadlineExceeded, OOM or AppError."""
    if signals.reason in ("Evicted", "DeadlineExceeded"):
        return signals.reason
    if any(end.reason == "OOMKilled" for end in signals.containers):
        return "OOM"
    return "AppError"


def reported_message(message: str, hint: str) -> str:
    """The message with the hint of the matched rule, a blank line between. Without a hint it stays as it is."""
    if not hint:
        return message
    return f"{message}\n\n{hint}" if message else hint
