"""Addresses with anything after the question mark: the filters mean something, or are refused by name."""

import pytest
from django.http import QueryDict
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from lookout.access import ensure_person
from lookout.filters import address_of, job_filter
from scheduler.actors import Role
from scheduler.errors import Invalid
from scheduler.filters import JOBS, FilterInvalid
from scheduler.queries.jobs import job_page, state_counts
from scheduler.states import JobState
from tests.api.caller import caller
from tests.factories import make_job
from tests.fuzz.effort import tried
from tests.fuzz.hostile_values import texts

pytestmark = pytest.mark.django_db

SIGNS = ["", "!", "^", "!*", ">", "<", "?"]
NAMES = [
    *[field.shown_name + sign for field in JOBS.fields.values() for sign in SIGNS], "priority>5", "cursor", "limit", "colour", "", "\x00", "queue[]",
]  # fmt: skip
likely = st.sampled_from(
    ["nightly", "oom", "oom/limit", "/", "%", "_", "\\", "'", *JobState, "01jf8z9q9v0000000000000000"]
)
pairs = st.lists(st.tuples(st.sampled_from(NAMES), likely | texts), max_size=5).map(
    lambda found: [
        (name.encode(errors="replace").decode(), value.encode(errors="replace").decode())
        for name, value in found
    ]
)


@tried(80)
@given(pairs=pairs)
def test_filters(pairs: list[tuple[str, str]]) -> None:
    query = QueryDict(address_of(pairs).removeprefix("?"))
    try:
        wanted = job_filter(query, besides=("limit", "cursor"))
        job_page(wanted, cursor=query.get("cursor", ""))
        state_counts(wanted)
    except (FilterInvalid, Invalid):
        return


@tried(25)
@given(pairs=pairs, page=st.sampled_from(["jobs", "find", "fleet", "queues", "policies", "sign-in"]))
def test_pages(pairs: list[tuple[str, str]], page: str) -> None:
    make_job("nightly")
    client = Client(raise_request_exception=False)
    client.force_login(ensure_person("olga", role=Role.OPERATOR))
    assert client.get(f"/{page}{address_of(pairs)}").status_code < 500


@tried(25)
@given(pairs=pairs, path=st.sampled_from(["jobs", "decisions", "runs", "events", "queues", "executors"]))
def test_the_api(pairs: list[tuple[str, str]], path: str) -> None:
    answer = caller("rita", Role.READER).get(f"v1/{path}{address_of(pairs)}")
    assert answer.status in (200, 400, 404)
    assert answer.status == 200 or answer.error["message"]
