"""What `tack demo` prints: the commands it really gives, and that somebody changed a policy of the story."""

import os
from pathlib import Path

import pytest

from lookout.client import Client
from lookout.story.command_line import CHECKOUT, CommandLine
from lookout.story.narrating import Narrator
from tests.cli.answers import policy_view
from tests.cli.small_server import TOKEN, SmallServer

POLICY_FILE = CHECKOUT / "lookout" / "story" / "policy.yaml"
JOB_FILE = CHECKOUT / "lookout" / "story" / "job.yaml"
JOB = "01m8kv97rd4xeyzbnnzd9ygah7"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def narrator(server: SmallServer, client: Client, told: list[str], tmp_path: Path) -> Narrator:
    at = {"TACK_URL": server.url, "TACK_TOKEN": TOKEN, "TACK_VAR": str(tmp_path)}
    return Narrator(tack=CommandLine(environment={**os.environ, **at}), client=client, say=told.append)


def test_the_command_that_is_told_makes_the_job_set_that_is_submitted(
    server: SmallServer, narrator: Narrator, told: list[str]
) -> None:
    server.on("POST jobs", {"jobs": [{"jobId": JOB, "clientId": None, "created": True}]}, status=201)
    job_set, job_id = narrator.submit(JOB_FILE, job_set="oom-story")
    assert job_id == JOB
    assert server.asked[-1].body["jobSetId"] == job_set
    expected = f"   $ sed -e 's|^jobSetId: .*|jobSetId: {job_set}|g' lookout/story/job.yaml | tack submit -"
    assert told[0] == expected


def test_a_policy_that_somebody_changed_is_told_with_what_puts_it_back(
    server: SmallServer, narrator: Narrator
) -> None:
    changed = policy_view(version=2)
    changed["policy"] = {**changed["policy"], "retryLimit": 0}
    server.on("GET retry-policies", {"retryPolicies": [changed]})
    narrator.make_policy("oom-grow", POLICY_FILE)
    assert narrator.broken_by_a_change() == (
        "Retry policy oom-grow was changed: it is at version 2 and not what lookout/story/policy.yaml says. "
        "tack apply -f lookout/story/policy.yaml puts it back."
    )


def test_a_policy_that_is_as_in_its_file_is_only_said_to_be_there(
    server: SmallServer, narrator: Narrator, told: list[str]
) -> None:
    server.on("GET retry-policies", {"retryPolicies": [policy_view()]})
    narrator.make_policy("oom-grow", POLICY_FILE)
    assert (told, narrator.broken_by_a_change()) == (["   oom-grow is there already."], "")
