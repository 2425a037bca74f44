"""What `tack demo` prints: the commands it really gives, and that somebody changed a policy of the story.

And of the second agent: only the story's job may go to it.
"""

import os
from pathlib import Path

import pytest
import yaml

from lookout.client import Client
from lookout.story.command_line import CHECKOUT, CommandLine
from lookout.story.narrating import Narrator
from lookout.story.second_agent import ONE_NODE
from scheduler.agent.config import load_agent_configuration
from scheduler.jobfile import parse_job_file
from scheduler.placement.labels import taints_of, tolerations_of, untolerated
from tests.cli.answers import policy_view
from tests.cli.small_server import TOKEN, SmallServer

POLICY_FILE = CHECKOUT / "lookout" / "story" / "policy.yaml"
JOB_FILE = CHECKOUT / "lookout" / "story" / "job.yaml"
LOST_AGENT_JOB_FILE = CHECKOUT / "lookout" / "story" / "lost-agent-job.yaml"
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


@pytest.mark.parametrize(("file", "may_go"), [(JOB_FILE, False), (LOST_AGENT_JOB_FILE, True)])
def test_only_the_job_of_its_story_may_go_to_the_agent_that_is_killed(file: Path, *, may_go: bool) -> None:
    (node,) = load_agent_configuration(None, ONE_NODE).local_nodes
    taints = taints_of({"key": each.key, "value": each.value, "effect": each.effect} for each in node.taints)
    (job,) = parse_job_file(yaml.safe_load(file.read_text())).items
    assert (untolerated(taints, tolerations_of(job.pod.tolerations)) is None) is may_go
