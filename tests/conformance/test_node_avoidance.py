"""node_avoidance.json: where a job may go after its runs failed under a policy that avoids their nodes.

Tack keeps the nodes a job avoids beside the affinity it came with. What counts is that the same nodes are open to
it as by the affinity that the case expects, whatever labels they carry.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from policies.documents import policy_from_object
from scheduler.affinity import read_affinity
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.fields import Fields
from scheduler.models import Job
from scheduler.models.clock import database_now
from scheduler.placement import NodeCapacity, Requirements, obstacle_to
from scheduler.publishing import create_policy
from scheduler.settling import settle_runs
from scheduler.spelling import Problems
from scheduler.states import RunState
from tests.conformance.cases import Case, cases
from tests.conformance.scenes import known
from tests.factories import make_executor, make_job, make_queue, make_run
from tests.people import OLGA

pytestmark = pytest.mark.django_db

RULE = {"action": "Retry", "onCategory": "oom", "mutate": {"affinity": {"avoidSameNode": True}}}
POLICY = {"name": "elsewhere", "retryLimit": 9, "defaultAction": "Fail", "rules": [RULE]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANOTHER_VALUE = "somewhere-else"


@pytest.mark.parametrize("case", cases("node_avoidance.json", expected_keys=("after",)))
def test_the_same_nodes_are_open_to_the_job(case: Case) -> None:
    case.refuse_unknown_keys(("label", "before", "nodes"), ("after",))
    after, label = case.expect["after"], case.given["label"]
    job = _failed_on_every_node(case)
    expected = Requirements.from_amounts(
        cpu_millicores=0, memory_bytes=0, resources={}, node_selector={}, affinity=_terms(after), avoided_nodes=()
    )  # fmt: skip
    for labels in _labels_of_nodes(after):
        found = [_is_open(labels, wanted, label) for wanted in (Requirements.of(job), expected)]
        assert found[0] == found[1], f"{case.id}: {case.title}: {labels}"


def _failed_on_every_node(case: Case) -> Job:
    config = Configuration(
        retry_policy=RetryPolicyConfiguration(enabled=True, global_max_retries=9),
        node_id_label=case.given["label"],
        indexed_node_labels=(case.given["label"],),
    )
    create_policy(policy=policy_from_object(POLICY), actor=OLGA, config=config, force=True)
    executor = make_executor("local", nodes=0)
    queue = make_queue(policies=("elsewhere",))
    job = make_job(queue, memory_bytes=None, cpu_request_millicores=0, affinity=_terms(case.given["before"]))
    *earlier, last = case.given["nodes"]
    for node in earlier:
        make_run(job, executor=executor, state=RunState.FAILED, node=node, settled_at=database_now())
    make_run(job, executor=executor, state=RunState.FAILED, node=last)
    settle_runs(config=config)
    job.refresh_from_db()
    return job


def _terms(affinity: Mapping[str, Any]) -> list[Any]:
    """As a job with this affinity in its pod spec stores it."""
    problems = Problems()
    found = read_affinity(Fields({"affinity": affinity}, "", problems))
    problems.raise_any()
    return found


def _labels_of_nodes(affinity: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Nodes with every mix of the values that the affinity speaks of, of one it does not, and of none."""
    values: dict[str, set[str | None]] = {}
    for term in known(known(affinity, "nodeAffinity")["nodeAffinity"], REQUIRED)[REQUIRED][
        "nodeSelectorTerms"
    ]:
        for expression in known(term, "matchExpressions")["matchExpressions"]:
            spoken_of = values.setdefault(expression["key"], {None, ANOTHER_VALUE})
            spoken_of.update(expression.get("values") or ())
    for mix in product(*values.values()):
        yield {key: value for key, value in zip(values, mix, strict=True) if value is not None}


def _is_open(labels: Mapping[str, str], wanted: Requirements, label: str) -> bool:
    node = NodeCapacity(executor="local", name="any", labels=labels, cpu_millicores=1, memory_bytes=1)
    obstacle = obstacle_to(
        wanted, node, node_id_label=label, cpu_millicores=1, memory_bytes=1, resources={}
    )  # fmt: skip
    return obstacle is None
