"""`tack cancel`, `reprioritize`, `preempt`: what is sent, and what people read."""

from typing import Any
from urllib.parse import parse_qsl

import pytest

from lookout.client import Client, Conflict, JobSelection
from tests.cli.answers import job_view
from tests.cli.conftest import Tack
from tests.cli.small_server import SmallServer, refusal


def test_cancel_tells_what_became_of_each(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/cancel", {"cancelled": ["a"], "cancelling": ["b"], "unchanged": ["c", "d"]})
    for job, state in (("c", "failed"), ("d", "cancelling")):
        server.on(f"GET jobs/{job}", job_view(job, state=state) | {"spec": {}, "runs": []})
    said = tack("cancel", "a", "b", "c", "d", "--reason", "enough")
    assert said.out.splitlines() == [
        "Cancelled job a",
        "Requested cancellation of job b",
        "Job c had ended already: failed",
        "Job d was being cancelled already",
    ]
    assert server.asked[0].body == {"jobIds": ["a", "b", "c", "d"], "reason": "enough"}


def test_a_selection_is_sent_as_it_is_named_and_counted(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/cancel", {"cancelled": ["a", "b"], "cancelling": ["c"], "unchanged": []})
    said = tack("cancel", "--queue", "nightly", "--job-set", "x/y", "--job-states", "queued,running")
    assert said.out.splitlines() == ["Cancelled 2 jobs", "Requested cancellation of 1 job"]
    assert server.asked[0].body == {
        "queue": "nightly",
        "jobSetId": "x/y",
        "states": ["queued", "running"],
        "reason": "",
    }


def test_a_filter_is_sent_as_the_address_of_the_list_has_it(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/cancel", {"cancelled": ["a"], "cancelling": [], "unchanged": []})
    said = tack(
        "cancel", "--filter", "queue=nightly&node.last!=gpu-07", "--filter", "error.any*=no space&retries>1"
    )
    assert said.out == "Cancelled 1 job\n"
    sent = server.asked[0].body
    assert sent == {"filter": sent["filter"], "reason": ""}
    assert parse_qsl(sent["filter"], keep_blank_values=True) == [
        ("queue", "nightly"), ("node.last!", "gpu-07"), ("error.any*", "no space"), ("retries>1", ""),
    ]  # fmt: skip


def test_preempt_asks_for_a_node_of_an_executor(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/preempt", {"preempting": ["a"], "unchanged": []})
    said = tack(
        "preempt", "--executor", "local", "--node", "local-1", "--priority-classes", "batch", "--reason", "r"
    )
    assert said.out == "Requested preemption of 1 job\n"
    assert server.asked[0].body == {
        "executor": "local",
        "node": "local-1",
        "priorityClasses": ["batch"],
        "reason": "r",
    }


def test_preempt_tells_which_jobs_have_nothing_to_give(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/preempt", {"preempting": ["a"], "unchanged": ["b"]})
    assert tack("preempt", "a", "b").out.splitlines() == [
        "Requested preemption of job a",
        "Job b has no run to preempt, or its run was asked already",
    ]


def test_reprioritize_sends_the_priority(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/reprioritize", {"reprioritized": ["a"], "unchanged": ["b"]})
    assert tack("reprioritize", "a", "b", "--priority", "3").out.splitlines() == [
        "Reprioritized job a",
        "Job b has this priority, has ended, or is being cancelled",
    ]
    assert server.asked[0].body == {"jobIds": ["a", "b"], "priority": 3}


def test_a_selection_without_jobs_is_told(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/reprioritize", {"reprioritized": [], "unchanged": []})
    said = tack("reprioritize", "--queue", "nightly", "--priority", "0")
    assert said.out == "Nothing to do: no such job is queued, leased, pending or running.\n"


def test_jobs_of_a_selection_that_have_the_priority_are_told(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/reprioritize", {"reprioritized": [], "unchanged": ["a", "b"]})
    said = tack("reprioritize", "--queue", "nightly", "--priority", "3")
    assert said.out == "2 jobs have priority 3 already\n"


def test_a_selection_without_a_run_to_preempt_is_told(server: SmallServer, tack: Tack) -> None:
    server.on("POST jobs/preempt", {"preempting": [], "unchanged": []})
    said = tack("preempt", "--queue", "nightly")
    assert said.out.startswith("Nothing to do: no such job has a run of a preemptible priority class")


@pytest.mark.parametrize(
    "words",
    [
        ("cancel",),
        ("preempt",),
        ("reprioritize", "--priority", "1"),
        ("cancel", "a", "--queue", "nightly"),
        ("cancel", "a", "--filter", "queue=nightly"),
        ("cancel", "--filter", ""),
        ("cancel", "--queue", "nightly", "--job-states", "failed"),
        ("reprioritize", "a"),
        ("reprioritize", "a", "--priority", "-1"),
        ("reprioritize", "a", "--priority", "high"),
    ],
)
def test_what_names_no_jobs_or_no_priority_is_a_usage_error(tack: Tack, words: tuple[str, ...]) -> None:
    assert tack(*words).code == 2


def test_the_client_goes_on_until_none_is_left(server: SmallServer, client: Client) -> None:
    answers: list[dict[str, Any]] = [
        {"cancelled": ["a"], "cancelling": [], "unchanged": [], "more": True},
        {"cancelled": ["b"], "cancelling": ["c"], "unchanged": [], "more": False},
    ]
    for answer in answers:
        server.on("POST jobs/cancel", answer)
    done = client.cancel_jobs(JobSelection(queue="nightly"))
    assert (done.cancelled, done.cancelling, done.more) == (("a", "b"), ("c",), False)


def test_a_job_that_is_not_preemptible_is_a_conflict(server: SmallServer, client: Client) -> None:
    server.on("POST jobs/preempt", refusal(409, "conflict", "It is not preemptible."))
    with pytest.raises(Conflict, match="not preemptible"):
        client.preempt_jobs(["a"])
