"""One file for the server and the agent: both read its keys, and the environment's, in the same way."""

from pathlib import Path

import pytest

from scheduler.agent.config import AgentConfiguration, agent_configuration_from, load_agent_configuration
from scheduler.config import Configuration, ConfigurationInvalid, configuration_from, load_configuration


def test_the_label_that_tells_nodes_apart_is_overridden_for_both() -> None:
    environment = {
        "TACK__SCHEDULING__NODEIDLABEL": "rack",
        "TACK__SCHEDULING__INDEXEDNODELABELS": "[rack]",
    }
    agents = load_agent_configuration(None, environment)
    assert load_configuration(None, environment).node_id_label == agents.node_id_label == "rack"
    assert agents.tracked_node_labels == ("rack",)


def test_letter_case_of_keys_is_forgiven_by_both() -> None:
    document = {
        "SCHEDULING": {"nodeidlabel": "rack", "MaxRetries": 7},
        "Local": {"NODES": 3},
        "KUBERNETES": {"trackednodelabels": ["zone"]},
        "application": {"ErrorCategories": {"Enabled": False}, "POOL": "gpu"},
    }
    server, agents = configuration_from(document), agent_configuration_from(document)
    assert (server.node_id_label, server.max_retries) == ("rack", 7)
    assert (len(agents.local_nodes), agents.pool, agents.tracked_node_labels) == (3, "gpu", ("zone", "rack"))


def test_a_key_deep_in_the_agents_sections_can_be_overridden() -> None:
    document = {"application": {"errorCategories": {"enabled": True, "categories": [{"name": "bad name!"}]}}}
    with pytest.raises(ConfigurationInvalid):
        agent_configuration_from(document)
    off = {"TACK__APPLICATION__ERRORCATEGORIES__ENABLED": "false"}
    assert load_agent_configuration(None, off).categories == AgentConfiguration().categories


def test_every_variable_that_cannot_be_read_is_told_with_every_other_problem(tmp_path: Path) -> None:
    file = tmp_path / "tack.yaml"
    file.write_text("scheduling: {maxRetries: many}\nlocal: {nodes: 0}\n")
    environment = {"TACK__LOCAL__CPU": "[", "TACK__SCHEDULING__NODEIDLABEL__X": "1"}
    with pytest.raises(ConfigurationInvalid) as told:
        load_configuration(file, environment | {"TACK__SCHEDULING__NODEIDLABEL": "a"})
    assert [problem.split(" ")[0] for problem in told.value.problems] == [
        "TACK__LOCAL__CPU",
        "TACK__SCHEDULING__NODEIDLABEL__X",
        "scheduling.maxRetries",
    ]
    with pytest.raises(ConfigurationInvalid) as told:
        load_agent_configuration(file, environment)
    assert "local.nodes takes a whole number from 1 to 1000; it is '0'." in told.value.problems


@pytest.mark.parametrize(
    ("key", "besides"),
    [
        ("maximumSchedulingBurst", "maximumSchedulingRate"),
        ("maximumPerQueueSchedulingBurst", "maximumPerQueueSchedulingRate"),
        ("maxQueueLookback", ""),
    ],
)
def test_a_zero_that_starts_nothing_warns(key: str, besides: str) -> None:
    (warning,) = configuration_from({"scheduling": {key: 0}}).warnings
    assert warning == f"No job starts: scheduling.{key} is 0. Set it to 1 or more to let jobs start again."
    if besides:
        assert configuration_from({"scheduling": {key: 0, besides: 0}}).warnings == ()
    assert Configuration().warnings == ()


def test_each_local_node_may_say_what_it_has() -> None:
    document = {
        "local": {
            "memory": "4Gi",
            "nodes": [
                {"labels": {"zone": "a"}},
                {
                    "cpu": "8",
                    "taints": [{"key": "gpu", "value": "only"}, {"key": "old", "effect": "NoExecute"}],
                    "resources": {"nvidia.com/gpu": 2, "ephemeral-storage": "1Gi"},
                },
            ],
        }
    }
    first, second = agent_configuration_from(document).local_nodes
    assert (first.labels, first.cpu_millicores, first.taints) == ({"zone": "a"}, 0, ())
    assert second.cpu_millicores == 8_000
    assert second.resources == {"nvidia.com/gpu": 2, "ephemeral-storage": 1 << 30}
    assert [(taint.key, taint.value, str(taint.effect)) for taint in second.taints] == [
        ("gpu", "only", "NoSchedule"),
        ("old", "", "NoExecute"),
    ]


@pytest.mark.parametrize(
    ("nodes", "key"),
    [
        ([{"cpu": "none"}], "local.nodes[0].cpu"),
        ([{}, {"labels": {"zone": 1}}], "local.nodes[1].labels"),
        ([{"taints": [{"key": "gpu", "effect": "Never"}]}], "local.nodes[0].taints[0].effect"),
        ([{"resources": {"nvidia.com/gpu": "many"}}], "local.nodes[0].resources"),
        ([{"disk": "1Gi"}], "local.nodes[0].disk"),
        (["one"], "local.nodes[0]"),
        ([{}] * 1_001, "local.nodes"),
        ([], "local.nodes"),
    ],
)
def test_what_is_wrong_with_a_local_node_is_told_with_its_key(nodes: object, key: str) -> None:
    with pytest.raises(ConfigurationInvalid) as told:
        agent_configuration_from({"local": {"nodes": nodes}})
    assert [problem.split(" ")[0] for problem in told.value.problems] == [key]
