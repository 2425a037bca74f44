"""The configuration: defaults, keys, overrides, and every contradiction told at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.config import (
    Configuration,
    ConfigurationInvalid,
    configuration_from,
    load_configuration,
    seconds_of,
)


def test_without_a_file_the_defaults_hold_and_retries_are_off() -> None:
    assert load_configuration(None, {}) == Configuration()
    assert not Configuration().retry_policy.enabled


def test_keys_are_read_with_the_models_names(tmp_path: Path) -> None:
    file = tmp_path / "tack.yaml"
    file.write_text(
        "scheduling:\n  retryPolicy: {enabled: true, globalMaxRetries: 7, defaultPolicyName: base}\n"
        "  nodeIdLabel: node\n  indexedNodeLabels: [node]\n  maxRetries: 0\nexecutorTimeout: 1m30s\n"
        "application: {errorCategories: {enabled: true}}\n"
    )
    found = load_configuration(file, {})
    assert (found.retry_policy.global_max_retries, found.retry_policy.default_policy_name) == (7, "base")
    assert (found.node_id_label, found.attempt_limit, found.executor_timeout_seconds) == ("node", 1, 90.0)


def test_an_environment_variable_overrides_a_single_key_whatever_its_letter_case() -> None:
    found = load_configuration(None, {"TACK__SCHEDULING__RETRYPOLICY__GLOBALMAXRETRIES": "2", "OTHER": "x"})
    assert found.retry_policy.global_max_retries == 2


@pytest.mark.parametrize("text", ["{", "a: b: c", "\t@"])
def test_a_value_in_the_environment_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="TACK__SCHEDULING__MAXRETRIES cannot be read"):
        load_configuration(None, {"TACK__SCHEDULING__MAXRETRIES": text})


def test_keys_that_are_no_text_are_unknown_like_others(tmp_path: Path) -> None:
    file = tmp_path / "tack.yaml"
    file.write_text("1: x\nscheduling: {2: y}\n")
    with pytest.raises(
        ConfigurationInvalid, match=r"1 is not a key Tack knows(.|\n)*scheduling\.2 is not a key"
    ):
        load_configuration(file, {"TACK__SCHEDULING__MAXRETRIES": "1"})


def test_every_problem_is_told_at_once_with_its_key() -> None:
    with pytest.raises(ConfigurationInvalid) as told:
        configuration_from(
            {
                "scheduling": {"retryPolicy": {"enabled": "yes", "speed": 1}, "maxRetries": -1},
                "executorTimeout": 5,
                "colour": "red",
            }
        )
    text = str(told.value)
    for key in (
        "scheduling.retryPolicy.enabled takes true or false",
        "scheduling.retryPolicy.speed is not a key",
        "scheduling.maxRetries takes a whole number",
        "executorTimeout takes a duration",
        "colour is not a key",
    ):
        assert key in text


def test_switching_on_without_the_indexed_label_stops_the_start_with_the_fix() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"indexedNodeLabels lacks 'kubernetes\.io/hostname'"):
        configuration_from({"scheduling": {"retryPolicy": {"enabled": True}}})


def test_a_cap_of_zero_is_the_kill_switch_and_warns() -> None:
    on = {
        "retryPolicy": {"enabled": True, "globalMaxRetries": 0},
        "indexedNodeLabels": ["kubernetes.io/hostname"],
    }
    assert "Retries are switched off" in configuration_from({"scheduling": on}).warnings[0]
    assert Configuration().warnings == ()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h", 3600), ("1h30m", 5400), ("90s", 90), ("250ms", 0.25), ("1m30s", 90), ("1.5h", 5400)],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "1x", "h", "-1s", "1s1h", None, 5, []])
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="takes a duration"):
        seconds_of(text)


SHIPPED = Path(__file__).resolve().parents[2] / "deploy" / "tack.yaml"


def test_the_shipped_file_says_the_defaults_and_indexes_the_node_id_label() -> None:
    shipped = load_configuration(SHIPPED, {})
    assert shipped == replace(Configuration(), indexed_node_labels=("kubernetes.io/hostname",))


def test_switching_retry_policies_on_is_one_line_of_the_shipped_file() -> None:
    switched = load_configuration(SHIPPED, {"TACK__SCHEDULING__RETRYPOLICY__ENABLED": "true"})
    assert switched.retry_policy.enabled


def test_priority_classes_are_read_with_their_limits_by_pool() -> None:
    found = configuration_from(
        {
            "scheduling": {
                "defaultPriorityClassName": "batch",
                "priorityClasses": {
                    "batch": {
                        "priority": 10,
                        "preemptible": True,
                        "maximumResourceFractionPerQueue": {"cpu": 0.5, "memory": 1},
                        "maximumResourceFractionPerQueueByPool": {"gpu": {"cpu": 0.25}},
                    }
                },
            }
        }
    )
    batch = found.priority_classes["batch"]
    assert (batch.priority, batch.preemptible) == (10, True)
    assert (batch.limits_in("default"), batch.limits_in("gpu")) == (
        {"cpu": 0.5, "memory": 1.0},
        {"cpu": 0.25, "memory": 1.0},
    )
    assert (found.class_of(""), found.class_of("batch"), found.class_of("urgent")) == ("batch", "batch", "")


def test_resource_types_are_named_alone_or_as_the_model_does() -> None:
    found = configuration_from(
        {
            "scheduling": {
                "supportedResourceTypes": [{"name": "cpu"}, "memory", "nvidia.com/gpu", "ephemeral-storage"]
            }
        }
    )
    assert set(found.supported_resource_types) == set(Configuration().supported_resource_types)


@pytest.mark.parametrize(
    ("scheduling", "says"),
    [
        ({"priorityClasses": {"batch": {"priority": -1}}}, "scheduling.priorityClasses.batch.priority takes"),
        (
            {"priorityClasses": {"batch": {"urgency": 1}}},
            "scheduling.priorityClasses.batch.urgency is not a key",
        ),
        (
            {"priorityClasses": {"batch": {"maximumResourceFractionPerQueue": {"cpu": 2}}}},
            "scheduling.priorityClasses.batch.maximumResourceFractionPerQueue takes a number from 0 to 1",
        ),
        ({"priorityClasses": {"batch": {}}}, "scheduling.defaultPriorityClassName is 'armada-default'"),
        ({"supportedResourceTypes": [{"name": "cpu", "resolution": "1m"}]}, "a name and nothing else"),
        ({"supportedResourceTypes": ["cpu"]}, "scheduling.supportedResourceTypes lacks memory. Add it."),
        ({"dominantResourceFairnessResourcesToConsider": []}, "no queue would have a share"),
        ({"dominantResourceFairnessResourcesToConsider": ["tapes"]}, "names tapes, which is not one of"),
    ],
)
def test_scheduling_that_makes_no_sense_is_told_with_its_key(scheduling: object, says: str) -> None:
    with pytest.raises(ConfigurationInvalid) as refused:
        configuration_from({"scheduling": scheduling})
    assert any(says in problem for problem in refused.value.problems)
