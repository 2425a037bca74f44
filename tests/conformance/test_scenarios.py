"""scenarios.json: one thing happens to a job, or a whole life does, and everything that follows is as recorded."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from scheduler.models import Run
from tests.conformance import stories, telling
from tests.conformance.cases import Case, cases
from tests.conformance.scenes import Probe, Scene, known, set_up
from tests.conformance.stimuli import play, settle

pytestmark = pytest.mark.django_db

GIVEN = ("config", "queue_retry_policies", "policies", "job", "stimulus", "schedulability_probe",
         "client_events_already_sent_by_executor_report")  # fmt: skip
EXPECTED = ("scheduler_events", "client_events", "job_state_after", "decision_metric",
            "gang_skip_metric_policy", "lookout", "cycle_error")  # fmt: skip


@pytest.mark.parametrize("case", cases("scenarios.json", "scenarios"))
def test_what_follows_is_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(GIVEN, EXPECTED)
    scene = set_up(case)
    play(scene)
    case.check(_what_followed(scene))
    assert scene.probe.calls <= case.given["schedulability_probe"]["calls"]
    if "cycle_error" in case.expect:
        _tried_again(scene)
    if not scene.config.retry_policy.enabled:
        assert not any("retry_policy_name" in event for event in telling.client_events(scene))


@pytest.mark.parametrize("case", cases("scenarios.json", "stories", expected_keys=("steps",)))
def test_a_whole_life_is_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys((), ("steps",))
    life = stories.begin(case.title)
    for step in case.expect["steps"]:
        known(step, "when", "client", "pod", "executor", "scheduler")
        stories.STEPS[step["when"]](life)
        assert _on_listed_keys(life.heard(), step["client"]) == step["client"], step["when"]
        if "pod" in step:
            assert life.pod() == step["pod"]


def _what_followed(scene: Scene) -> dict[str, Any]:
    expect = scene.case.expect
    actual = {
        "scheduler_events": _on_listed_keys(telling.scheduler_events(scene), expect["scheduler_events"]),
        "client_events": _on_listed_keys(telling.client_events(scene), expect["client_events"]),
        "job_state_after": telling.job_state(scene),
        "decision_metric": telling.decision_metric(scene),
        "gang_skip_metric_policy": telling.gang_skip_metric(scene),
    }
    if listed := expect.get("lookout"):
        actual["lookout"] = {k: v for k, v in telling.seen_on_pages(scene).items() if k in listed}
    if "cycle_error" in expect:
        assert _awaits_settling(scene)
        actual["cycle_error"] = expect["cycle_error"]
    return actual


def _awaits_settling(scene: Scene) -> bool:
    """Nobody decided, and the try does not count."""
    run = scene.ran()
    return run.settled_at is None and run.settle_tries == 0 and run.settle_error == ""


def _tried_again(scene: Scene) -> None:
    """Once the fleet can be looked at, the run is settled."""
    scene.probe = Probe([])
    settle(scene)
    assert not Run.objects.filter(settled_at=None).exists()


def _on_listed_keys(actual: Sequence[dict[str, Any]], listed: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The events on the keys that the case lists; a list of another length is compared whole."""
    if len(actual) != len(listed):
        return list(actual)
    return [
        {key: value for key, value in one.items() if key in wanted}
        for one, wanted in zip(actual, listed, strict=True)
    ]
