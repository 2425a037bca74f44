"""The program `tack` against the real API: Django serves, real verbs decide, PostgreSQL remembers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from pytest_django.live_server_helper import LiveServer

from lookout.access import ensure_person, issue_token
from lookout.client import Client, Conflict
from policies.signals import ContainerEnd
from scheduler.actors import Role
from scheduler.config import Configuration, RetryPolicyConfiguration
from scheduler.executors.protocol import KilledBy, Output, Report, ReportState
from scheduler.leasing import run_round
from scheduler.models import Run
from scheduler.reporting import record_reports
from scheduler.settling import settle_runs
from tests.cli.answers import POLICY_TEXT
from tests.cli.conftest import Tack
from tests.factories import POD_SPEC, make_executor

pytestmark = pytest.mark.django_db(transaction=True)

ON = Configuration(
    retry_policy=RetryPolicyConfiguration(enabled=True), indexed_node_labels=("kubernetes.io/hostname",)
)
SENTENCE = "Rule 1 of oom-grow (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi"


@pytest.fixture
def alone(live_server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that `tack up` would have written, with an operator's token."""
    token = issue_token(ensure_person("olga", role=Role.OPERATOR))
    (tmp_path / "token").write_text(f"{live_server.url}\n{token}\n")
    for name in ("TACK_URL", "TACK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TACK_VAR", str(tmp_path))
    return tmp_path


@pytest.fixture
def tack(tack_alone: Tack) -> Tack:
    """The program, which finds that folder."""
    return tack_alone


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY_TEXT)
    return path


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    item = {"clientId": "first", "podSpec": POD_SPEC}
    path.write_text(yaml.safe_dump({"queue": "nightly", "jobSetId": "report/2026", "jobs": [item]}))
    return path


@pytest.fixture
def submitted(tack: Tack, policy_file: Path, job_file: Path) -> str:
    """The id of a job in a queue whose policy retries it with more memory; there is an executor for it."""
    make_executor()
    assert tack("create", "retry-policy", "-f", str(policy_file)).code == 0
    assert tack("create", "queue", "nightly", "--retry-policies", "oom-grow").code == 0
    found = re.fullmatch(
        r"Submitted job with id (\w+) to job set report/2026\n", tack("submit", str(job_file)).out
    )
    assert found is not None
    return found[1]


def next_run(job_id: str = "") -> Run:
    """The run that a round makes: of the job, or of the only one."""
    run_round(pool="default", config=ON)
    return (Run.objects.filter(job=job_id) if job_id else Run.objects).latest("number")


def report(run: Run, state: ReportState, **fields: Any) -> None:
    """What the agent says of a run, and what is decided about it."""
    record_reports(executor="local", reports=[Report(run_id=str(run.id), state=state, **fields)])
    settle_runs(config=ON)


def runs_out_of_memory(run: Run) -> None:
    report(run, ReportState.RUNNING)
    report(
        run,
        ReportState.FAILED,
        exit_code=137,
        category="oom",
        message="Container main failed with exit code 137 because OOMKilled: ",
        reason="OOM",
        containers=(ContainerEnd(name="main", exit_code=137, reason="OOMKilled"),),
        killed_by=KilledBy.MEMORY,
        memory_peak_bytes=64 << 20,
        output=Output(head=b"writing 100Mi\n", tail=b"", dropped_bytes=0),
    )


def succeeds(run: Run) -> None:
    report(run, ReportState.RUNNING)
    report(run, ReportState.SUCCEEDED, exit_code=0, output=Output(head=b"done\n", tail=b"", dropped_bytes=0))


def test_the_out_of_memory_story_can_be_told_and_read(tack: Tack, submitted: str) -> None:
    runs_out_of_memory(next_run())
    assert " queued " in tack("get", "jobs", "--category-last", "oom").out
    succeeds(next_run())
    out = tack("get", "job", submitted, "--output").out
    assert "128Mi (submitted with 64Mi)" in out
    assert f"Run 1: {SENTENCE}" in out
    assert "Last error, of run 1:\nContainer main failed with exit code 137 because OOMKilled" in out
    assert out.endswith("Output of run 2:\ndone\n")
    told = json.loads(tack("get", "job", submitted, "-o", "json").out)
    assert [run["memoryLimitBytes"] for run in told["runs"]] == [64 << 20, 128 << 20]
    assert [run["retryable"] for run in told["runs"]] == [True, None]


def test_watch_tells_the_story_as_it_happens_and_ends_with_it(submitted: str) -> None:
    with watching() as lines:
        until(lines, "JobQueuedEvent")
        runs_out_of_memory(next_run())
        assert "JobFailedEvent" in until(
            lines,
            "Queued:   1, Leased:   0, Pending:   0, Running:   0, Succeeded:   0, Failed:   0, Cancelled:   0 | JobFailed",
        )
        assert next(lines).startswith("Job failed: Container main failed")
        assert next(lines) == "Retried by retry policy oom-grow, category oom. The job is queued again.\n"
        succeeds(next_run())
        assert f"JobSucceededEvent, job id: {submitted}" in until(lines, "JobSucceededEvent")
        assert list(lines) == []


@contextmanager
def watching() -> Iterator[Iterator[str]]:
    """The lines of `tack watch`, which has to end with 0."""
    command = [sys.executable, "-m", "lookout.cli", "watch", "nightly", "report/2026"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        assert running.stdout is not None
        yield iter(running.stdout)
        assert running.wait(10) == 0


def until(lines: Iterator[str], part: str) -> str:
    return next(line for line in lines if part in line)


def test_a_job_that_fails_for_good_is_told_by_watch(tack: Tack, submitted: str) -> None:
    report(next_run(), ReportState.FAILED, exit_code=1, category="", message="no", reason="AppError")
    said = tack("watch", "nightly", "report/2026")
    assert said.code == 3
    assert "Job failed: Retry policy: no rule matched, using default action" in said.out


def test_cancelling_a_queued_job_ends_it_and_a_second_time_changes_nothing(
    tack: Tack, submitted: str
) -> None:
    assert tack("cancel", submitted, "--reason", "enough").out == f"Cancelled job {submitted}\n"
    assert "already" in tack("cancel", submitted).out
    assert "Cancelled by" in tack("get", "job", submitted).out
    assert tack("watch", "nightly", "report/2026").code == 0


def test_a_second_submission_answers_with_the_first_job(tack: Tack, submitted: str, job_file: Path) -> None:
    said = tack("submit", str(job_file))
    assert said.out == (
        f"Submitted job with id {submitted} to job set report/2026 (it was there already, with client id first)\n"
    )


def test_a_dry_run_of_a_submission_submits_nothing(tack: Tack, job_file: Path) -> None:
    tack("create", "queue", "nightly")
    assert tack("submit", str(job_file), "--dry-run").code == 0
    assert tack("get", "jobs").err == "No jobs.\n"


def test_a_wrong_job_file_is_told_by_line(tack: Tack, tmp_path: Path) -> None:
    tack("create", "queue", "nightly")
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "queue: nightly\n"
        "jobSetId: report\n"
        "jobs:\n"
        "  - priorty: 1\n"
        "    podSpec:\n"
        "      containers:\n"
        "        - name: main\n"
        "          image: none\n"
        "          resources: {limits: {memory: 64Mo, cpu: 1}, requests: {memory: 64Mi, cpu: 1}}\n"
    )
    said = tack("submit", str(path))
    assert said.code == 1
    told = [line.removeprefix("Error: ").partition(": ")[0] for line in said.err.splitlines()]
    assert f"{path}:4" in told
    assert f"{path}:9" in told


def test_policies_are_made_once_updated_applied_and_deleted(tack: Tack, policy_file: Path) -> None:
    assert (
        tack("update", "retry-policy", "-f", str(policy_file)).err
        == "Error: There is no retry policy 'oom-grow'.\n"
    )
    assert tack("apply", "-f", str(policy_file)).out == "Created retry policy oom-grow\n"
    assert "exists already" in tack("create", "-f", str(policy_file)).err
    assert tack("apply", "-f", str(policy_file)).out == "Retry policy oom-grow is as in the file already\n"
    policy_file.write_text(POLICY_TEXT.replace("retryLimit: 2", "retryLimit: 3"))
    assert (
        tack("apply", "-f", str(policy_file), "--note", "one more").out == "Updated retry policy oom-grow\n"
    )
    assert "retryLimit: 3\n" in tack("get", "retry-policy", "oom-grow").out
    assert (
        tack("delete", "retry-policy", "oom-grow").out
        == "Deleted retry policy oom-grow (or it did not exist)\n"
    )
    assert tack("delete", "retry-policy", "oom-grow").code == 0
    assert "retryPolicies: []" in tack("get", "retry-policies").out


def test_what_get_prints_can_be_created_again(tack: Tack, policy_file: Path, tmp_path: Path) -> None:
    tack("create", "-f", str(policy_file))
    tack("create", "queue", "nightly", "-l", "team=data", "--retry-policies", "oom-grow", "--owners", "alice")
    printed = {what: tack("get", *what.split()).out for what in ("queue nightly", "retry-policy oom-grow")}
    assert tack("delete", "queue", "nightly").code == 0
    assert tack("delete", "retry-policy", "oom-grow").code == 0
    for what in reversed(printed):
        (tmp_path / "again.yaml").write_text(printed[what])
        assert tack("create", "-f", str(tmp_path / "again.yaml")).code == 0
        assert tack("get", *what.split()).out == printed[what]


def test_an_attached_policy_is_deleted_only_with_detach(tack: Tack, submitted: str) -> None:
    said = tack("delete", "retry-policy", "oom-grow")
    assert said.code == 1
    assert "nightly" in said.err
    assert tack("delete", "retry-policy", "oom-grow", "--detach").code == 0
    assert "retryPolicies" not in tack("get", "queue", "nightly").out


def test_queues_are_made_once_updated_in_full_and_chosen(tack: Tack) -> None:
    assert "There is no queue 'nightly'." in tack("update", "queue", "nightly").err
    assert tack("create", "queue", "nightly", "--cordon", "-l", "team=data").code == 0
    assert "exists already" in tack("create", "queue", "nightly").err
    assert "name: nightly" in tack("get", "queues", "--only-cordoned", "-l", "team").out
    assert tack("update", "queue", "nightly", "--priority-factor", "2").out == "Updated queue nightly\n"
    assert tack("get", "queue", "nightly").out.splitlines()[2:] == ["name: nightly", "priorityFactor: 2"]


def test_policies_that_do_not_exist_are_named(tack: Tack) -> None:
    said = tack("create", "queue", "nightly", "--retry-policies", "a,b")
    assert said.code == 1
    assert '"a", "b"' in said.err or "'a', 'b'" in said.err


def test_what_executors_cannot_do_is_refused_by_line_and_passes_with_force(
    tack: Tack, policy_file: Path
) -> None:
    make_executor(categories=[{"name": "oom", "disposition": "Retain"}])
    said = tack("create", "retry-policy", "-f", str(policy_file))
    assert said.code == 1
    assert said.err.startswith(f"Error: {policy_file}:")
    assert "local" in said.err
    assert tack("create", "retry-policy", "-f", str(policy_file), "--force").code == 0


def test_a_reader_may_read_and_not_write(tack: Tack, live_server: LiveServer, alone: Path) -> None:
    token = issue_token(ensure_person("rita", role=Role.READER))
    (alone / "token").write_text(f"{live_server.url}\n{token}\n")
    assert tack("get", "queues").code == 0
    said = tack("create", "queue", "nightly")
    assert said.code == 1
    assert "'rita' lacks the permission create_queue" in said.err


def test_an_edit_of_an_old_version_is_refused(live_server: LiveServer, alone: Path) -> None:
    with Client.from_environment() as client:
        first = client.create_retry_policy(POLICY_TEXT)
        client.update_retry_policy(
            "oom-grow", POLICY_TEXT.replace("Limit: 2", "Limit: 3"), based_on=first.version
        )
        with pytest.raises(Conflict):
            client.update_retry_policy("oom-grow", POLICY_TEXT, based_on=first.version)
        assert [version.version for version in client.retry_policy_versions("oom-grow")] == [2, 1]


def test_jobs_and_decisions_come_in_pages(
    tack: Tack, submitted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookout.client.PAGE", 1)
    with Client.from_environment() as client:
        file = {"queue": "nightly", "jobSetId": "many", "jobs": [{"podSpec": POD_SPEC}] * 3}
        ids = [job.job_id for job in client.submit_jobs(file)]
        assert [job.job_id for job in client.jobs(job_set=["many"])] == ids[::-1]
        runs_out_of_memory(next_run(submitted))
        assert [decision.verdict for decision in client.decisions(job_id=submitted, verdict=["retry"])] == [
            "retry"
        ]
        assert client.check_retry_policy(POLICY_TEXT).rules
        assert [node.name for node in client.executor("local").nodes] == ["local-1", "local-2"]
        assert client.me().name == "olga"
        run = client.runs(job_id=submitted)[0]
        assert client.run(run.run_id) == run
        assert client.run_output(run.run_id) == "writing 100Mi\n"


def test_login_prints_a_link_that_signs_in(tack: Tack, live_server: LiveServer) -> None:
    link = tack("login").out.strip()
    assert link.startswith(f"{live_server.url}/sign-in/")
    browser = httpx.Client(follow_redirects=True)
    with browser:
        form = browser.get(link)
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
        assert token is not None
        assert browser.post(link, data={"csrfmiddlewaretoken": token[1]}).url.path != httpx.URL(link).path
        assert browser.cookies.get("tack_session")
