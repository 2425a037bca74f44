"""Failed pod checks: ends after which the lease is given back, whatever the categories say.

They are older than categories and go before them. Until a container has started they look at the pod's events
and then at its status; from then on only at the containers that failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.fields import Fields, Findings
from policies.matchers import Pattern, PatternError, compile_pattern
from policies.problems import DocumentInvalid
from policies.signals import Signals
from policies.tree import tree_of_object

__all__ = ["ContainerCheck", "EventCheck", "FailedChecks", "StatusCheck", "parse_failed_checks"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EventCheck:
    """An event of that type, of that reason when one is given, whose message has the pattern."""

    pattern: Pattern
    type: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusCheck:
    """A pod of that status reason, when one is given, whose status message has the pattern."""

    pattern: Pattern
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerCheck:
    """A failed container whose name and message have these patterns."""

    name: Pattern
    message: Pattern


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedChecks:
    """The checks of an executor: any of them is enough."""

    events: tuple[EventCheck, ...] = ()
    statuses: tuple[StatusCheck, ...] = ()
    containers: tuple[ContainerCheck, ...] = ()

    def match(self, signals: Signals) -> bool:
        """Whether the lease is to be given back. `signals.message` is what the pod's status says, not a text made of it."""
        if signals.containers:
            return any(self._by_container(check, signals) for check in self.containers)
        return any(self._by_event(check, signals) for check in self.events) or any(
            check.reason in ("", signals.reason) and check.pattern.allows(signals.message)
            for check in self.statuses
        )

    def _by_container(self, check: ContainerCheck, signals: Signals) -> bool:
        return any(
            check.name.allows(end.name) and check.message.allows(end.message)
            for end in signals.failed_containers
        )

    def _by_event(self, check: EventCheck, signals: Signals) -> bool:
        return any(
            event.type == check.type
            and check.reason in ("", event.reason)
            and check.pattern.allows(event.message)
            for event in signals.events
        )


def parse_failed_checks(value: object, *, path: str = "") -> FailedChecks:
    """The checks of a configuration object; None means none.

    Raises DocumentInvalid with every problem; `path` says where in a larger file the object lies.
    """
    findings = Findings()
    fields = Fields(tree_of_object(value), path, findings)
    events = tuple(_event_check(each) for each in _each(fields, "events"))
    statuses = tuple(_status_check(each) for each in _each(fields, "podStatuses"))
    containers = tuple(_container_check(each) for each in _each(fields, "containerStatuses"))
    fields.finish()
    if problems := findings.decoding + findings.rules:
        raise DocumentInvalid(problems)
    return FailedChecks(events=events, statuses=statuses, containers=containers)


def _each(fields: Fields, name: str) -> list[Fields]:
    return [Fields(node, path, fields.findings) for path, node in fields.elements(name)]


def _event_check(fields: Fields) -> EventCheck:
    kind = fields.text("type")
    if kind not in ("Normal", "Warning"):
        fields.findings.broken(fields.at("type"), "event_type", "The type of an event is Normal or Warning.")
    check = EventCheck(pattern=_pattern(fields, "regexp"), type=kind, reason=fields.text("reason"))
    fields.finish()
    return check


def _status_check(fields: Fields) -> StatusCheck:
    check = StatusCheck(pattern=_pattern(fields, "regexp"), reason=fields.text("reason"))
    fields.finish()
    return check


def _container_check(fields: Fields) -> ContainerCheck:
    check = ContainerCheck(
        name=_pattern(fields, "containerNameRegexp"), message=_pattern(fields, "messageRegexp")
    )
    fields.finish()
    return check


def _pattern(fields: Fields, name: str) -> Pattern:
    try:
        return compile_pattern(fields.text(name))
    except PatternError as error:
        fields.findings.broken(fields.at(name), "regexp", f"This is not an RE2 pattern: {error}.")
        return compile_pattern("")
