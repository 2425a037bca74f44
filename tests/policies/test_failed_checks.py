"""Failed pod checks: until a container started events and status count, from then on the failed containers."""

from typing import Any

import pytest

from policies.failed_checks import FailedChecks, parse_failed_checks
from policies.problems import DocumentInvalid
from policies.signals import ContainerEnd, PodEvent, Signals

EVENT = PodEvent(type="Warning", reason="FailedMount", message="volume not attached")
ENDED = ContainerEnd(name="main", exit_code=1, message="please retry")
FINE = ContainerEnd(name="side", exit_code=0, message="please retry")


@pytest.mark.parametrize(
    ("sentence", "checks", "signals", "matches"),
    [
        ("no checks match nothing", {}, Signals(message="x"), False),
        ("an event by type and message", {"events": [{"type": "Warning", "regexp": "not attached$"}]}, Signals(events=(EVENT,)), True),
        ("an event of another type", {"events": [{"type": "Normal", "regexp": ""}]}, Signals(events=(EVENT,)), False),
        ("an event of another reason", {"events": [{"type": "Warning", "reason": "Failed", "regexp": ""}]}, Signals(events=(EVENT,)), False),
        ("the status message", {"podStatuses": [{"regexp": "^please"}]}, Signals(message="please retry"), True),
        ("the status reason, whatever the message", {"podStatuses": [{"reason": "OutOfcpu"}]}, Signals(reason="OutOfcpu"), True),
        ("another status reason", {"podStatuses": [{"reason": "OutOfcpu"}]}, Signals(reason="Evicted"), False),
        ("a failed container by its message", {"containerStatuses": [{"messageRegexp": "retry"}]}, Signals(containers=(ENDED,)), True),
        ("a failed container by its name", {"containerStatuses": [{"containerNameRegexp": "^main$"}]}, Signals(containers=(ENDED,)), True),
        ("another container's name", {"containerStatuses": [{"containerNameRegexp": "^init"}]}, Signals(containers=(ENDED,)), False),
        ("a container that ended well", {"containerStatuses": [{"messageRegexp": "retry"}]}, Signals(containers=(FINE,)), False),
        ("an event, once a container had started", {"events": [{"type": "Warning"}]}, Signals(events=(EVENT,), containers=(ENDED,)), False),
        ("a status, once a container had started", {"podStatuses": [{"regexp": "please"}]}, Signals(message="please", containers=(ENDED,)), False),
        ("a container check, before any container started", {"containerStatuses": [{}]}, Signals(message="x"), False),
    ],
)  # fmt: skip
def test_what_gives_a_lease_back(
    sentence: str, checks: dict[str, Any], signals: Signals, matches: bool
) -> None:
    assert parse_failed_checks(checks).match(signals) is matches, sentence


def test_nothing_written_is_no_check() -> None:
    assert parse_failed_checks(None) == FailedChecks()


def test_every_problem_is_said_with_its_path() -> None:
    wrong = {
        "events": [{"regexp": "(", "type": "Loud"}],
        "podStatuses": [{"message": "x"}],
        "containerStatuses": {},
        "more": 1,
    }
    with pytest.raises(DocumentInvalid) as refused:
        parse_failed_checks(wrong, path="kubernetes.failedPodChecks")
    assert {
        problem.path.removeprefix("kubernetes.failedPodChecks.") for problem in refused.value.problems
    } == {
        "events[0].regexp",
        "events[0].type",
        "podStatuses[0].message",
        "containerStatuses",
        "more",
    }
