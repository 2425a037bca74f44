"""The filters of an address: what stands beside them is told apart, and every problem is told at once."""

import pytest
from django.http import QueryDict

from lookout.filters import job_filter
from scheduler.filters import FilterInvalid, job_filter_of, text_of


def test_all_problems_are_told_at_once_each_with_its_name() -> None:
    with pytest.raises(FilterInvalid) as caught:
        job_filter(
            QueryDict(
                f"state=odd&id=x&colour=red&queue=%00&limit=5&{'&'.join(f'queue={n}' for n in range(101))}"
            )
        )
    assert {problem.field for problem in caught.value.problems} == {"state", "id", "colour", "queue", "limit"}


def test_what_is_no_filter_is_named_by_who_reads_it() -> None:
    found = job_filter(QueryDict("limit=5&cursor=x&state=failed"), besides=("limit", "cursor"))
    assert found.values("state") == ("failed",)


@pytest.mark.parametrize(
    "asked", ["queue=a&priority>5", "queue=a&priority%3E5", "queue=a&priority%3E5=", "priority>5&queue=a"]
)
def test_an_address_may_be_typed_or_sent_by_a_form(asked: str) -> None:
    assert text_of(job_filter(QueryDict(asked))) == text_of(job_filter_of("queue=a&priority>5"))
