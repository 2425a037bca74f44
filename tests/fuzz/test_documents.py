"""Documents of every kind, mutated: read, or refused with problems, and never anything else."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.api.json_reading import object_of_json
from policies.category_documents import parse_categories
from policies.documents import parse_policy_document, policy_document, policy_from_object, policy_yaml
from policies.failed_checks import parse_failed_checks
from policies.problems import DocumentInvalid
from policies.tree import object_of_text
from scheduler.agent.config import agent_configuration_from
from scheduler.config import configuration_from
from scheduler.jobfile import parse_job_file
from scheduler.keys import ConfigurationInvalid
from scheduler.queuefile import parse_queue, queue_document
from tests.factories import OOM_GROW, POD_SPEC
from tests.fuzz.effort import tried
from tests.fuzz.hostile_values import as_json, mutated, yaml_lines
from tests.hostile.soon import soon

POLICY: dict[str, Any] = {
    **OOM_GROW,
    "rules": [
        {"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": {"factor": 2}}}},
        {
            "action": "Retry",
            "onCategory": "gpu",
            "onSubcategory": "lost",
            "mutate": {"affinity": {"avoidSameNode": True}},
        },
        {"action": "Fail", "onCategory": "bug", "mutate": {"resources": {"memory": {"static": "1Gi"}}}},
    ],
}
CATEGORIES: dict[str, Any] = {
    "enabled": True,
    "defaultCategory": "other",
    "defaultSubcategory": "unknown",
    "categories": [
        {
            "name": "oom",
            "action": "Delete",
            "rules": [{"onConditions": ["OOMKilled"], "subcategory": "limit", "hint": "x"}],
        },
        {
            "name": "exit",
            "rules": [{"onExitCodes": {"operator": "In", "values": [1, 2]}, "containerName": "main"}],
        },
        {
            "name": "text",
            "rules": [{"onTerminationMessage": {"pattern": "a+b"}}, {"onPodError": {"pattern": "^x"}}],
        },
        {
            "name": "event",
            "rules": [{"onPodEvents": {"regexp": "x|y", "type": "Warning", "reason": "Failed"}}],
        },
    ],
}
QUEUE: dict[str, Any] = {
    "apiVersion": "armadaproject.io/v1beta1",
    "kind": "Queue",
    "name": "nightly",
    "priorityFactor": 2.5,
    "userOwners": ["alice"],
    "groupOwners": ["data"],
    "permissions": [{"subjects": [{"kind": "User", "name": "bob"}], "verbs": ["submit", "cancel"]}],
    "cordoned": False,
    "labels": {"team": "x"},
    "retryPolicies": ["oom-grow"],
}
JOB: dict[str, Any] = {
    "priority": 3,
    "namespace": "default",
    "clientId": "c",
    "labels": {"a": "b"},
    "annotations": {
        "a/b": "c\nd", "armadaproject.io/gangId": "train", "armadaproject.io/gangCardinality": "2",
        "armadaproject.io/gangNodeUniformityLabel": "rack",
    },
    "podSpec": {
        **POD_SPEC,
        "activeDeadlineSeconds": 60,
        "terminationGracePeriodSeconds": 5,
        "nodeSelector": {"zone": "a"},
        "priorityClassName": "armada-default",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a"]}, {"key": "cores", "operator": "Gt", "values": ["4"]},
            ]},
        ]}}},
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "only", "effect": "NoSchedule"}],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        "initContainers": [{"name": "init", "command": ["true"], "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "main", "image": "x", "command": ["sh"], "args": ["-c", "x"], "workingDir": "/tmp",
                "env": [{"name": "A", "value": "b"}], "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi", "gpu": 1}, "limits": {"memory": "1Gi"}},
            }
        ],
    },
}  # fmt: skip
JOB_FILE: dict[str, Any] = {"queue": "nightly", "jobSetId": "a/b", "jobs": [JOB, {"podSpecs": [POD_SPEC]}]}
FAILED_CHECKS: dict[str, Any] = {
    "events": [{"regexp": "x", "type": "Warning", "reason": "Failed"}],
    "podStatuses": [{"regexp": "x", "reason": "y"}],
    "containerStatuses": [{"containerNameRegexp": "main", "messageRegexp": "x"}],
}
CONFIGURATION: dict[str, Any] = {
    "scheduling": {
        "retryPolicy": {"enabled": True, "globalMaxRetries": 5, "defaultPolicyName": "base"},
        "maxRetries": 3,
        "nodeIdLabel": "kubernetes.io/hostname",
        "indexedNodeLabels": ["kubernetes.io/hostname"],
        "maximumSchedulingRate": 100,
        "maximumSchedulingBurst": 10,
        "maxQueueLookback": 1000,
        "priorityClasses": {
            "armada-default": {
                "priority": 1000,
                "preemptible": True,
                "maximumResourceFractionPerQueue": {"cpu": 0.5},
                "maximumResourceFractionPerQueueByPool": {"default": {"cpu": 0.25}},
            }
        },
        "defaultPriorityClassName": "armada-default",
        "dominantResourceFairnessResourcesToConsider": ["cpu"],
        "protectedFractionOfFairShare": 0.5,
        "supportedResourceTypes": [{"name": "cpu"}, "memory"],
        "requeuePreempted": True,
    },
    "executorTimeout": "1h",
    "application": {"errorCategories": CATEGORIES, "pool": "default"},
    "kubernetes": {
        "trackedNodeLabels": ["zone"],
        "stuckTerminatingPodExpiry": "5m",
        "failedPodExpiry": "1h",
        "failedPodChecks": FAILED_CHECKS,
    },
    "task": {"jobLeaseRenewalInterval": "5s"},
    "local": {
        "nodes": [
            {},
            {
                "cpu": "1",
                "labels": {"zone": "a"},
                "taints": [{"key": "gpu", "value": "only", "effect": "NoExecute"}],
                "resources": {"nvidia.com/gpu": 1},
            },
        ],
        "cpu": "1",
        "memory": "1Gi",
    },
}

READERS: dict[str, tuple[Callable[[Any], object], Mapping[str, Any]]] = {
    "policy": (policy_from_object, POLICY),
    "categories": (parse_categories, CATEGORIES),
    "failed checks": (lambda value: parse_failed_checks(value, path="x"), FAILED_CHECKS),
    "queue": (parse_queue, QUEUE),
    "job file": (parse_job_file, JOB_FILE),
    "configuration": (configuration_from, CONFIGURATION),
    "configuration of the agent": (agent_configuration_from, CONFIGURATION),
}


@pytest.mark.parametrize("kind", READERS)
def test_the_documents_that_are_mutated_are_valid(kind: str) -> None:
    read, valid = READERS[kind]
    read(valid)


@pytest.mark.parametrize("kind", READERS)
@tried(50)
@given(data=st.data())
def test_a_mutated_document_is_read_or_refused_with_problems(kind: str, data: st.DataObject) -> None:
    read, valid = READERS[kind]
    document = data.draw(mutated(dict(valid)))
    if not isinstance(document, dict) and "configuration" in kind:
        return  # the file that holds it refuses what is no mapping
    with soon():
        try:
            read(document)
        except (DocumentInvalid, ConfigurationInvalid) as refused:
            check(refused)


@pytest.mark.parametrize("kind", ["policy", "queue", "job file", "configuration"])
@tried(30)
@given(data=st.data())
def test_mutated_text_is_read_the_same_as_json_and_as_yaml_or_refused(kind: str, data: st.DataObject) -> None:
    text = data.draw(as_json(mutated(dict(READERS[kind][1]))))
    found = []
    for read in (object_of_json, object_of_text):
        with soon():
            try:
                found.append(json.dumps(read(text), sort_keys=True))
            except DocumentInvalid as refused:
                check(refused)
    if len(found) == 2 and "Infinity" not in found[1]:  # what is beyond a double is beyond every limit
        assert json.loads(found[0].replace(".0", "")) == json.loads(found[1].replace(".0", ""))


@tried(100)
@given(text=yaml_lines | st.text(max_size=60))
def test_text_that_is_nearly_yaml_is_read_or_refused(text: str) -> None:
    for read in (object_of_text, parse_policy_document, object_of_json):
        with soon():
            try:
                read(text)
            except DocumentInvalid as refused:
                check(refused)


@tried(100)
@given(document=mutated(POLICY))
def test_a_policy_that_is_read_is_written_and_read_back_the_same(document: Any) -> None:
    try:
        policy = policy_from_object(document)
    except DocumentInvalid:
        return
    assert policy_from_object(policy_document(policy)) == policy
    assert parse_policy_document(policy_yaml(policy)) == policy


@tried(100)
@given(document=mutated(QUEUE))
def test_a_queue_that_is_read_is_written_and_read_back_the_same(document: Any) -> None:
    try:
        spec = parse_queue(document)
    except DocumentInvalid:
        return
    assert parse_queue(queue_document(spec)) == spec


def check(refused: DocumentInvalid | ConfigurationInvalid) -> None:
    """Problems are there, few enough to be read, and none is longer than a paragraph."""
    assert 0 < len(refused.problems) <= 100
    for problem in refused.problems:
        assert 0 < len(str(problem)) < 2_000
