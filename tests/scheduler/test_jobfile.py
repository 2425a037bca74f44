"""Job files: what is accepted, and every problem of what is not, each with its path."""

from contextlib import suppress
from copy import deepcopy
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.documents import DocumentInvalid
from scheduler.jobfile import FILE_SHAPE, JobFile, JobItem, parse_job_file
from scheduler.podspec import MAX_SPEC_BYTES, POD_SHAPE
from scheduler.spelling import MAX_DEPTH

MEBI = 1 << 20


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "main", "command": ["/bin/sh"], **fields}


def resources(
    *, requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {name: block for name, block in (("requests", requests), ("limits", limits)) if block is not None}


def pod(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"containers": list(containers or [container()]), **fields}


def file(**job: Any) -> dict[str, Any]:
    return {"queue": "nightly", "jobSetId": "a/b", "jobs": [{"podSpec": pod(), **job}]}


def item(**job: Any) -> JobItem:
    return parse_job_file(file(**job)).items[0]


def problems(document: object) -> dict[str, str]:
    with pytest.raises(DocumentInvalid) as refused:
        parse_job_file(document)
    return {problem.path: problem.message for problem in refused.value.problems}


def pod_problems(spec: Any) -> dict[str, str]:
    found = problems(file(podSpec=spec))
    return {path.removeprefix("jobs[0].podSpec."): message for path, message in found.items()}


def test_a_small_file_has_defaults() -> None:
    parsed = parse_job_file(file())
    assert isinstance(parsed, JobFile)
    assert (parsed.queue, parsed.job_set, len(parsed.items)) == ("nightly", "a/b", 1)
    [job] = parsed.items
    assert (job.priority, job.namespace, job.client_id, job.labels, job.annotations) == (
        0,
        "default",
        "",
        {},
        {},
    )
    assert job.pod.grace_period_seconds == 30
    assert (job.pod.memory_request_bytes, job.pod.memory_limit_bytes) == (None, None)


def test_the_letter_case_of_field_names_is_forgiven_and_mended() -> None:
    block = resources(limits={"Memory-thing.io/x": 1, "memory": "64Mi"})
    spec = {
        "Containers": [{"NAME": "main", "Resources": {"Limits": block["limits"]}}],
        "nodeselector": {"Disk": "ssd"},
    }
    document = {"Queue": "nightly", "jobsetid": "set", "JOBS": [{"podspec": spec, "CLIENTID": "c"}]}
    [job] = parse_job_file(document).items
    assert job.client_id == "c"
    assert job.pod.node_selector == {"Disk": "ssd"}
    assert job.pod.spec["containers"][0]["resources"]["limits"] == {
        "Memory-thing.io/x": "1",
        "memory": "64Mi",
    }


def test_the_document_that_was_sent_is_left_alone() -> None:
    document = file(podSpec=pod(container(resources=resources(limits={"cpu": 1}))))
    before = deepcopy(document)
    parse_job_file(document)
    assert document == before


def test_every_problem_is_told_with_its_path() -> None:
    block = resources(requests={"cpu": "2", "memory": "128Mi"}, limits={"memory": "64Mi", "cpu": "two"})
    document = {
        "jobSetId": "line\nbreak",
        "jobz": [],
        "jobs": [
            {"priority": -1, "namespace": "Team", "podSpec": pod(container(resources=block))},
            {"clientId": 7, "podSpec": pod(restartPolicy="OnFailure")},
        ],
    }
    found = problems(document)
    assert set(found) == {
        "queue",
        "jobSetId",
        "jobz",
        "jobs[0].priority",
        "jobs[0].namespace",
        "jobs[0].podSpec.containers[0].resources.limits.cpu",
        "jobs[0].podSpec.containers[0].resources.requests.memory",
        "jobs[1].clientId",
        "jobs[1].podSpec.restartPolicy",
    }
    assert "above its limit" in found["jobs[0].podSpec.containers[0].resources.requests.memory"]


@pytest.mark.parametrize("field", ["ingress", "services", "scheduler", "requiredNodeLabels"])
def test_fields_of_a_job_that_the_product_lacks_are_refused_by_name(field: str) -> None:
    assert field in problems(file(**{field: {}}))[f"jobs[0].{field}"]


def test_other_annotations_of_the_model_are_kept() -> None:
    annotations = {"armadaproject.io/failFast": "true", "note": "two\nlines"}
    assert item(annotations=annotations).annotations == annotations


def test_an_unknown_field_of_a_job_is_refused_and_one_of_a_pod_is_kept() -> None:
    assert problems(file(podspek={})) == {
        "jobs[0].podspek": "There is no field podspek here. Did you mean podSpec?"
    }
    assert item(podSpec=pod(hostNetwork=True)).pod.spec["hostNetwork"] is True


def test_a_misspelled_field_of_a_pod_is_refused_with_the_one_that_is_meant() -> None:
    container = {"name": "a", "comand": ["true"], "resources": {"limts": {}}}
    found = pod_problems({"containers": [container], "volums": []})
    assert found["volums"] == "There is no field volums here. Did you mean volumes?"
    assert found["containers[0].comand"] == "There is no field comand here. Did you mean command?"
    assert found["containers[0].resources.limts"] == "There is no field limts here. Did you mean limits?"
    assert "Did you mean containers?" in pod_problems({"containrs": []})["containrs"]


def test_a_misspelled_field_of_a_job_is_refused_with_the_one_that_is_meant() -> None:
    found = problems(file(priorty=1))
    assert found["jobs[0].priorty"] == "There is no field priorty here. Did you mean priority?"


def test_pod_specs_may_stand_for_pod_spec_with_exactly_one_pod() -> None:
    one = {"queue": "q", "jobSetId": "s", "jobs": [{"podSpecs": [pod()]}]}
    assert parse_job_file(one).items[0].pod.spec == pod()
    two = {**one, "jobs": [{"podSpecs": [pod(), pod()]}]}
    assert "exactly one pod" in problems(two)["jobs[0].podSpecs"]
    both = {**one, "jobs": [{"podSpecs": [pod()], "podSpec": pod()}]}
    assert "Keep one" in problems(both)["jobs[0].podSpecs"]
    assert problems({**one, "jobs": [{}]}) == {"jobs[0].podSpec": "Is required."}
    wrong = {**one, "jobs": [{"podSpecs": [{"containers": []}]}]}
    assert set(problems(wrong)) == {"jobs[0].podSpecs[0].containers"}


def test_requests_that_are_absent_equal_their_limits() -> None:
    spec = pod(
        container(
            resources=resources(
                requests={"cpu": 0.5}, limits={"cpu": 1, "memory": "64Mi", "nvidia.com/gpu": 2}
            )
        )
    )
    job = item(podSpec=spec)
    assert job.pod.spec["containers"][0]["resources"]["requests"] == {
        "cpu": "0.5",
        "memory": "64Mi",
        "nvidia.com/gpu": "2",
    }
    assert job.pod.cpu_request_millicores == 500
    assert job.pod.memory_request_bytes == job.pod.memory_limit_bytes == 64 * MEBI
    assert job.pod.resources == {"nvidia.com/gpu": 2}


def test_amounts_are_exact_and_rounded_up_where_reserved() -> None:
    amounts = {"cpu": "0.0001", "memory": "100m", "ephemeral-storage": "1.5"}
    job = item(podSpec=pod(container(resources=resources(requests=amounts))))
    assert (job.pod.cpu_request_millicores, job.pod.memory_request_bytes) == (1, 1)
    assert job.pod.resources == {"ephemeral-storage": 2}
    assert job.pod.memory_limit_bytes is None


@pytest.mark.parametrize(
    ("name", "amount", "says"),
    [
        ("cpu", True, "Takes a quantity"),
        ("cpu", ["1"], "Takes a quantity"),
        ("memory", "64 Mi", "is not a quantity"),
        ("memory", "-1", "Must not be negative"),
        ("nvidia.com/gpu", "500m", "whole pieces"),
    ],
)
def test_an_amount_that_makes_no_sense_is_refused(name: str, amount: Any, says: str) -> None:
    found = pod_problems(pod(container(resources=resources(limits={name: amount}))))
    [(path, message)] = found.items()
    assert path.startswith("containers[0].resources.limits")
    assert says in message


def test_more_than_can_be_counted_is_refused() -> None:
    large = container(resources=resources(limits={"memory": "8Ei"}))
    assert "more than can be counted" in pod_problems(pod(large, {**large, "name": "other"}))["containers"]


def test_containers_need_names_that_differ_and_there_must_be_one() -> None:
    assert pod_problems({"containers": []}) == {"containers": "Needs at least one element."}
    assert pod_problems(pod({"image": "x"})) == {"containers[0].name": "Is required."}
    assert (
        "two containers"
        in pod_problems(pod(container(), initContainers=[container()]))["initContainers[0].name"]
    )
    assert "containers[0].name" in pod_problems(pod(container(name="-x")))


def test_texts_of_a_container_are_texts() -> None:
    odd = container(command="sh", args=[1], env=[{"name": "A", "value": 1}], workingDir=2)
    assert set(pod_problems(pod(odd))) == {
        "containers[0].command",
        "containers[0].args[0]",
        "containers[0].env[0].value",
        "containers[0].workingDir",
    }
    assert item(podSpec=pod(container(args=["two\nlines\t"]))).pod.spec["containers"][0]["args"] == [
        "two\nlines\t"
    ]


def test_volumes_are_mounted_by_name() -> None:
    mount = {"name": "scratch", "mountPath": "/scratch"}
    scratch = {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    assert item(podSpec=pod(container(volumeMounts=[mount]), volumes=[scratch])).pod.spec["volumes"] == [
        scratch
    ]
    found = pod_problems(
        pod(container(volumeMounts=[{"name": "other", "mountPath": "scratch"}]), volumes=[scratch])
    )
    assert set(found) == {"containers[0].volumeMounts[0].name", "containers[0].volumeMounts[0].mountPath"}


def test_times_are_whole_seconds() -> None:
    spec = pod(terminationGracePeriodSeconds=5.0, activeDeadlineSeconds=60)
    assert item(podSpec=spec).pod.grace_period_seconds == 5
    found = pod_problems(pod(terminationGracePeriodSeconds=-1, activeDeadlineSeconds="60"))
    assert set(found) == {"terminationGracePeriodSeconds", "activeDeadlineSeconds"}
    assert set(pod_problems(pod(activeDeadlineSeconds=0))) == {"activeDeadlineSeconds"}


@pytest.mark.parametrize(
    "value", ["a\x00b", "\ud800", float("nan"), float("inf"), 2**63, date(2026, 1, 1), b"x"]
)
def test_what_cannot_be_stored_is_refused_with_its_place(value: Any) -> None:
    assert set(pod_problems(pod(hostAliases=[{"value": value}]))) == {"hostAliases[0].value"}


def test_names_that_are_no_text_are_refused() -> None:
    assert "not text" in pod_problems(pod(nodeSelector={True: "x"}))["nodeSelector"]
    assert "nodeSelector.on" in pod_problems(pod(nodeSelector={"on": True}))


def test_a_field_in_two_spellings_is_refused() -> None:
    assert "twice" in problems({**file(), "Queue": "other"})["queue"]


def test_sizes_are_limited() -> None:
    assert "jobSetId" in problems({**file(), "jobSetId": "x" * 1_025})
    assert "jobs[0].clientId" in problems(file(clientId="x" * 101))
    assert "at most 10,000" in problems({**file(), "jobs": [None] * 10_001})["jobs"]
    assert (
        "larger than"
        in problems(file(podSpec=pod(container(args=["x" * MAX_SPEC_BYTES]))))["jobs[0].podSpec"]
    )


def test_nesting_is_limited_also_where_it_has_no_end() -> None:
    endless: dict[str, Any] = pod()
    endless["again"] = endless
    with pytest.raises(DocumentInvalid, match=f"Nested deeper than {MAX_DEPTH}"):
        parse_job_file(file(podSpec=endless))


def test_a_few_references_that_mean_a_hundred_million_values_are_refused() -> None:
    bomb: list[Any] = ["x"] * 100
    for _ in range(4):
        bomb = [bomb] * 100
    with pytest.raises(DocumentInvalid, match="More than"):
        parse_job_file(file(podSpec=pod(bomb=bomb)))


@pytest.mark.parametrize("document", [None, [], "text", 7, {}, {"jobs": {}}, {"jobs": [None, 1, []]}])
def test_anything_else_is_refused_and_nothing_breaks(document: object) -> None:
    assert problems(document)


_NAMES = st.sampled_from(
    [*FILE_SHAPE, *FILE_SHAPE["jobs"], *POD_SHAPE, *POD_SHAPE["containers"], "limits", "memory"]
)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["a", "64Mi", "1", "", "Never", "Always", "\x00", "\ud800", "x" * 200])
)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_NAMES | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=30,
)


@settings(max_examples=100, deadline=None)
@given(_ANYTHING, _ANYTHING)
def test_whatever_is_sent_is_read_or_refused(one: Any, other: Any) -> None:
    odd = pod(container(resources=one, env=other), volumes=other, nodeSelector=one)
    for document in (one, file(podSpec=one, labels=other), file(podSpec=odd, annotations=other)):
        with suppress(DocumentInvalid):
            assert parse_job_file(document).items


def test_fields_that_not_every_executor_acts_on_are_noted_without_where_they_are() -> None:
    two = [container(tty=True, env=[{"name": "a", "value": "b"}]), container(name="other", tty=True)]
    asked = pod(*two, hostNetwork=True, dnsPolicy="", nodeSelector={"a": "b"}, activeDeadlineSeconds=5)
    assert item(podSpec=asked).pod.needed_fields == ("spec.containers[].tty", "spec.hostNetwork")


def test_fields_deep_below_each_other_are_told_by_where_they_begin() -> None:
    deep: dict[str, Any] = {str(number): 1 for number in range(1_000)}
    for _ in range(20):
        deep = {"k" * 100: deep}
    [path] = item(podSpec=pod(strange=deep)).pod.needed_fields
    assert len(path) == 1_025


def test_more_fields_than_an_executor_could_know_are_refused() -> None:
    many = {f"field{number:04}": 1 for number in range(1_000)}
    assert "Sets more fields of its own" in problems(file(podSpec=pod(strange=many)))["jobs[0].podSpec"]
