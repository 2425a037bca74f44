"""The one filter language: addresses to values."""

import pytest
from django.http import QueryDict

from lookout.filters import FilterInvalid, job_filter
from scheduler.queries.jobs import JobFilter

JOB = "01m8j53gvqm9s346q3d25vt4f5"


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("", JobFilter()),
        ("queue=a&queue=b&queue=a&queue=", JobFilter(queue=("a", "b"))),
        ("state=Failed&state=RUNNING", JobFilter(states=("failed", "running"))),
        (f"id={JOB.upper()}", JobFilter(ids=(JOB,))),
        ("jobSet=a/b%20c,d", JobFilter(job_set=("a/b c,d",))),
        ("category.any=oom&category.last=gpu/xid", JobFilter(category_any=("oom",), category_last=("gpu/xid",))),
        ("text=%20night%20", JobFilter(text="night")),
    ],
)  # fmt: skip
def test_an_address_is_a_filter(address: str, wanted: JobFilter) -> None:
    assert job_filter(QueryDict(address)) == wanted


def test_all_problems_are_told_at_once_each_with_its_name() -> None:
    with pytest.raises(FilterInvalid) as caught:
        job_filter(
            QueryDict(
                f"state=odd&id=x&colour=red&queue=%00&limit=5&{'&'.join(f'queue={n}' for n in range(101))}"
            )
        )
    assert {problem.field for problem in caught.value.problems} == {"state", "id", "colour", "queue", "limit"}


def test_what_is_no_filter_is_named_by_who_reads_it() -> None:
    assert job_filter(QueryDict("limit=5&cursor=x&state=failed"), besides=("limit", "cursor")).states == (
        "failed",
    )


def test_an_id_that_only_looks_like_one_is_a_problem() -> None:
    with pytest.raises(FilterInvalid, match="id takes a job id"):
        job_filter(QueryDict("id=z1m8j53gvqm9s346q3d25vt4f5"))
