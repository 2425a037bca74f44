"""Gangs as jobs ask for them: annotations that must make sense alone and agree within a file."""

from typing import Any

import pytest

from policies.documents import DocumentInvalid
from scheduler.gangs import ALONE, Membership
from scheduler.jobfile import JobItem, parse_job_file

PREFIX = "armadaproject.io/gang"


def job(priority_class: str = "", **gang: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main"}], "priorityClassName": priority_class}
    return {"podSpec": spec, "annotations": {f"{PREFIX}{name}": value for name, value in gang.items()}}


def read(*jobs: dict[str, Any]) -> tuple[JobItem, ...]:
    return parse_job_file({"queue": "q", "jobSetId": "s", "jobs": list(jobs)}).items


def problems(*jobs: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(DocumentInvalid) as refused:
        read(*jobs)
    return {problem.path: problem.message for problem in refused.value.problems}


def at(index: int, name: str) -> str:
    return f'jobs[{index}].annotations["{PREFIX}{name}"]'


def test_a_job_without_the_annotations_is_one_of_its_own() -> None:
    assert read(job())[0].gang is ALONE
    assert read(job(Id="train", Cardinality="1"))[0].gang is ALONE


def test_members_name_their_gang_and_keep_the_annotations() -> None:
    asked = job(Id="train", Cardinality="2", NodeUniformityLabel="rack")
    first, _ = read(asked, asked)
    assert first.gang == Membership(gang_id="train", cardinality=2, uniformity_label="rack")
    assert first.annotations == asked["annotations"]


def test_members_may_come_in_several_files() -> None:
    assert read(job(Id="train", Cardinality="4"))[0].gang.cardinality == 4


@pytest.mark.parametrize("cardinality", ["0", "-1", "two", "1.5", "1001", "²", " 2", "00000000000000000002"])
def test_a_cardinality_is_a_whole_number_within_bounds(cardinality: str) -> None:
    found = problems(job(Id="train", Cardinality=cardinality))
    assert "from 1 to 1,000" in found[at(0, "Cardinality")]


def test_a_gang_needs_both_its_id_and_its_cardinality() -> None:
    assert set(problems(job(Id="train"))) == {at(0, "Cardinality")}
    assert set(problems(job(Cardinality="2"))) == {"jobs[0].annotations"}
    assert set(problems(job(Id="", Cardinality="2"))) == {at(0, "Id")}


def test_other_annotations_of_gangs_are_refused() -> None:
    assert set(problems(job(Id="train", Cardinality="2", MinimumCardinality="1"))) == {
        at(0, "MinimumCardinality")
    }


@pytest.mark.parametrize(
    ("other", "where"),
    [
        (job(Id="train", Cardinality="3"), at(1, "Cardinality")),
        (job(Id="train", Cardinality="2", NodeUniformityLabel="rack"), at(1, "NodeUniformityLabel")),
        (job("urgent", Id="train", Cardinality="2"), "jobs[1].podSpec.priorityClassName"),
    ],
)
def test_members_of_one_gang_must_agree(other: dict[str, Any], where: str) -> None:
    assert set(problems(job(Id="train", Cardinality="2"), other)) == {where}


def test_a_gang_has_no_more_members_than_it_says() -> None:
    asked = job(Id="train", Cardinality="2")
    found = problems(asked, asked, job(Id="other", Cardinality="2"), asked)
    assert set(found) == {at(3, "Id")}
    assert "has 3 members in this file and says 2" in found[at(3, "Id")]
