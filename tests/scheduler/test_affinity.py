"""Where a pod may go: required node affinity, tolerations and the name of a class, checked field by field."""

from typing import Any

import pytest

from policies.documents import DocumentInvalid
from scheduler.jobfile import parse_job_file
from scheduler.podspec import Pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read(**spec: Any) -> Pod:
    pod = {"containers": [{"name": "main"}], **spec}
    return parse_job_file({"queue": "q", "jobSetId": "s", "jobs": [{"podSpec": pod}]}).items[0].pod


def problems(**spec: Any) -> dict[str, str]:
    with pytest.raises(DocumentInvalid) as refused:
        read(**spec)
    return {
        problem.path.removeprefix("jobs[0].podSpec."): problem.message for problem in refused.value.problems
    }


def affinity(*terms: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def term(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def problems_of(expression: dict[str, Any]) -> dict[str, str]:
    below = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]."
    return {
        path.removeprefix(below): message
        for path, message in problems(affinity=affinity(term(expression))).items()
    }


def test_a_pod_that_says_nothing_may_go_anywhere_and_is_of_the_default_class() -> None:
    pod = read()
    assert (list(pod.affinity), list(pod.tolerations), pod.priority_class) == ([], [], "")
    empty = read(affinity={}, tolerations=[], priorityClassName="")
    assert (list(empty.affinity), list(empty.tolerations), empty.priority_class) == ([], [], "")


def test_required_terms_are_kept_with_all_their_expressions() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    large = {"key": "cores", "operator": "Gt", "values": ["16"]}
    spot = {"key": "spot", "operator": "DoesNotExist"}
    pod = read(affinity=affinity(term(zone, large), term(spot)))
    assert pod.affinity == [[zone, large], [{**spot, "values": []}]]
    assert pod.spec["affinity"] == affinity(term(zone, large), term(spot))


def test_the_letter_case_of_its_fields_is_forgiven() -> None:
    written = {"nodeaffinity": {REQUIRED.lower(): {"nodeselectorterms": [{"matchexpressions": [
        {"Key": "zone", "OPERATOR": "Exists"}]}]}}}  # fmt: skip
    assert read(affinity=written).affinity == [[{"key": "zone", "operator": "Exists", "values": []}]]


@pytest.mark.parametrize(
    ("expression", "field", "says"),
    [
        ({"operator": "Exists"}, "key", "Is required."),
        ({"key": "a"}, "operator", "Is required."),
        ({"key": "a", "operator": "Is", "values": ["b"]}, "operator", "Takes one of In, NotIn, Exists"),
        ({"key": "a", "operator": "In"}, "values", "In needs at least one value."),
        ({"key": "a", "operator": "NotIn", "values": []}, "values", "NotIn needs at least one value."),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, "values", "Exists takes no values."),
        ({"key": "a", "operator": "Gt", "values": ["1", "2"]}, "values", "Gt takes exactly one value"),
        ({"key": "a", "operator": "Lt", "values": ["many"]}, "values", "Lt takes exactly one value"),
        ({"key": "a", "operator": "In", "values": [1]}, "values[0]", "Quote it."),
        ({"key": "a", "operator": "In", "values": ["v" * 64]}, "values[0]", "at most 63"),
        ({"key": "a", "operator": "Exists", "vales": []}, "vales", "Did you mean values?"),
    ],
)
def test_an_expression_that_makes_no_sense_is_told_where(
    expression: dict[str, Any], field: str, says: str
) -> None:
    assert says in problems_of(expression)[field]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("affinity.podAffinity", {"podAffinity": {REQUIRED: []}}),
        ("affinity.podAntiAffinity", {"podAntiAffinity": {}}),
        (f"affinity.nodeAffinity.{PREFERRED}", {"nodeAffinity": {PREFERRED: [{"weight": 1}]}}),
        ("affinity.zoneAffinity", {"zoneAffinity": {}}),
        (f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms", affinity()),
        (f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions", affinity({})),
        (
            f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields",
            affinity({"matchFields": [], "matchExpressions": [{"key": "a", "operator": "Exists"}]}),
        ),
        ("affinity", "zone-a"),
    ],
)
def test_whatever_else_an_affinity_asks_for_is_refused_with_its_path(path: str, value: Any) -> None:
    assert set(problems(affinity=value)) == {path}


def test_tolerations_are_kept_with_their_defaults() -> None:
    pod = read(tolerations=[{"key": "gpu", "value": "only"}, {"operator": "Exists", "effect": "NoSchedule"}])
    assert pod.tolerations == [
        {"key": "gpu", "operator": "Equal", "value": "only", "effect": ""},
        {"key": "", "operator": "Exists", "value": "", "effect": "NoSchedule"},
    ]


@pytest.mark.parametrize(
    ("toleration", "field"),
    [
        ({"value": "only"}, "key"),
        ({"key": "gpu", "operator": "Exists", "value": "only"}, "value"),
        ({"key": "gpu", "operator": "In"}, "operator"),
        ({"key": "gpu", "effect": "Sometimes"}, "effect"),
        ({"key": "gpu", "operator": "Exists", "tolerationSeconds": 60}, "tolerationSeconds"),
        ({"key": "gpu", "taint": True}, "taint"),
    ],
)
def test_a_toleration_that_makes_no_sense_is_told_where(toleration: dict[str, Any], field: str) -> None:
    assert set(problems(tolerations=[toleration])) == {f"tolerations[0].{field}"}


def test_lists_are_bounded() -> None:
    many = [{"key": str(number), "operator": "Exists"} for number in range(65)]
    assert set(problems(tolerations=many)) == {"tolerations"}
    found = problems(affinity=affinity(*(term(each) for each in many)))
    assert set(found) == {f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"}
