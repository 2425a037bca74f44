"""Jobs whose scripts say how each of their runs ends, and whether that is what became of them.

Every run signs its start in a folder of its job before it does anything, so that one that was started twice shows.
A run whose runner was killed has no end of its own: it is `internal`/`node-failure` and the script goes on with the next.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookout.client import Client, Decision, JobDetail, Run

QUEUE = POLICY = "scripted"
RETRIES = 3
"""What the policy grants."""
FLAKY_CODE, FATAL_CODE = 42, 7
CATEGORIES = {
    "enabled": True,
    "categories": [
        {
            "name": name,
            "action": "Delete",
            "rules": [{"onExitCodes": {"operator": "In", "values": [code]}}],
        }
        for name, code in (("flaky", FLAKY_CODE), ("fatal", FATAL_CODE))
    ],
}
_POLICY_DOCUMENT = {
    "apiVersion": "armadaproject.io/v1beta1",
    "kind": "RetryPolicy",
    "name": POLICY,
    "retryLimit": RETRIES,
    "defaultAction": "Fail",
    "rules": [
        {"action": "Retry", "onCategory": "flaky"},
        {"action": "Retry", "onCategory": "internal", "onSubcategory": "node-failure"},
    ],
}
_SCRIPT = """
echo "$TACK_RUN_ID" >> "$1/starts"
sleep "$3"
case "$2" in
    succeeds) exit 0 ;;
    fatal) exit 7 ;;
    flaky) exit 42 ;;
esac
failures=$(ls "$1/failures" | wc -l)
if [ "$failures" -lt "${2#recovers-}" ]; then mkdir "$1/failures/$failures"; exit 42; fi
"""
_MOST_FLAKY = {"succeeds": 0, "flaky": RETRIES + 1, "recovers-1": 1, "fatal": 0, "recovers-2": 2}
KINDS = tuple(_MOST_FLAKY)
FLAKY, FATAL, LOST = "failed/flaky", "failed/fatal", "failed/internal/node-failure"
RETURNED = "lease_returned"


class NotAsScripted(RuntimeError):
    """Jobs did not end as their scripts say; a line for each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scripted:
    """One job, and the folder its runs sign in."""

    job_id: str
    kind: str
    folder: Path


def make_queue(client: Client) -> None:
    client.create_retry_policy(_POLICY_DOCUMENT)
    client.create_queue({"name": QUEUE, "retryPolicies": [POLICY]})


def job_file(folder: Path, *, first: int, jobs: int, seconds: float) -> dict[str, Any]:
    """Jobs with these numbers, each working so long, one kind after the other. The same file again makes no job."""
    return {
        "queue": QUEUE,
        "jobSetId": QUEUE,
        "jobs": [_job(folder / str(number), number, seconds) for number in range(first, first + jobs)],
    }


def _job(folder: Path, number: int, seconds: float) -> dict[str, Any]:
    for each in (folder, folder / "failures"):
        each.mkdir(parents=True, exist_ok=True)
        each.chmod(0o777)  # runs of jobs are other users
    amounts = {"cpu": "50m", "memory": "32Mi"}
    container = {
        "name": "main",
        "command": ["/bin/sh", "-c", _SCRIPT, "sh", str(folder), KINDS[number % len(KINDS)], str(seconds)],
        "resources": {"requests": amounts, "limits": amounts},
    }
    pod_spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"clientId": str(number), "priority": 0, "namespace": "default", "podSpec": pod_spec}


def submitted(client: Client, folder: Path, *, first: int, jobs: int, seconds: float) -> list[Scripted]:
    """Submit them. Asked again after an answer that was lost, it finds the jobs of the first time."""
    asked = job_file(folder, first=first, jobs=jobs, seconds=seconds)
    return [
        Scripted(
            job_id=each.job_id,
            kind=KINDS[int(each.client_id) % len(KINDS)],
            folder=folder / each.client_id,
        )
        for each in client.submit_jobs(asked)
    ]


def check(client: Client, jobs: Sequence[Scripted]) -> Counter[str]:
    """How the runs ended, counted. Raises NotAsScripted with all that is not as it should be."""
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    for job in jobs:
        detail = client.job(job.job_id)
        decisions = list(client.decisions(job_id=job.job_id))[::-1]
        wrong += [f"{job.job_id} ({job.kind}): {each}" for each in _faults(job, detail, decisions)]
        ends.update(_end(run) for run in detail.runs)
    wrong += _event_faults(client, jobs)
    if wrong:
        raise NotAsScripted("\n".join(wrong))
    return ends


def _end(run: Run) -> str:
    return "/".join(filter(None, (run.state, run.category, run.subcategory)))


def _faults(job: Scripted, detail: JobDetail, decisions: Sequence[Decision]) -> Iterator[str]:
    ends = [_end(run) for run in detail.runs]
    if not _is_as_scripted(job.kind, ends):
        yield f"its runs ended as {ends}"
    state = "succeeded" if ends[-1:] == ["succeeded"] else "failed"
    if detail.state != state:
        yield f"it should be {state}; it is {detail.state}"
    failed = [run.run_id for run in detail.runs if run.state == "failed"]
    if [each.run_id for each in decisions] != failed:
        yield f"{len(failed)} runs failed, and there are {len(decisions)} decisions"
    spent = [
        each.policy_budget.before.used
        for each in decisions
        if each.policy_budget and each.policy_budget.before
    ]
    if spent != list(range(len(decisions))):
        yield f"retries were spent as {spent}"
    starts = (job.folder / "starts").read_text().split()
    if len(set(starts)) != len(starts) or not set(starts) <= {run.run_id for run in detail.runs}:
        yield f"its runs signed their starts as {starts}"


def _is_as_scripted(kind: str, ends: Sequence[str]) -> bool:
    """Whether the runs ended as the script says, but for those whose runner was killed.

    A run killed just before its end may have signed its failure already, so a lost run can stand for a flaky one.
    What an agent gave back when it was stopped in order, as after a start that failed, costs nothing.
    """
    ends = [end for end in ends if end != RETURNED]
    flaky, lost = ends.count(FLAKY), ends.count(LOST)
    if not ends or len(ends) > RETRIES + 1 or flaky + lost < len(ends) - 1:
        return False
    if ends[-1] in (FLAKY, LOST):  # the retries are used up
        return len(ends) == RETRIES + 1 and flaky <= _MOST_FLAKY[kind]
    if kind in ("succeeds", "fatal"):
        return flaky == 0 and ends[-1] == ("succeeded" if kind == "succeeds" else FATAL)
    return ends[-1] == "succeeded" and flaky <= _MOST_FLAKY[kind] <= flaky + lost


def _event_faults(client: Client, jobs: Sequence[Scripted]) -> list[str]:
    """Events are numbered without gaps, and a job has one of each thing that happened to it once."""
    events = list(client.events(QUEUE, QUEUE))
    faults = []
    if [event.id for event in events] != list(range(1, len(events) + 1)):
        faults.append("The events are not numbered from 1 without gaps.")
    kinds = Counter((event.job_id, event.kind) for event in events)
    for job in jobs:
        runs = client.job(job.job_id).runs
        told = (kinds[job.job_id, "leased"], kinds[job.job_id, "failed"], kinds[job.job_id, "succeeded"])
        happened = (
            len(runs),
            sum(run.state == "failed" for run in runs),
            sum(run.state == "succeeded" for run in runs),
        )
        if told != happened:
            faults.append(f"{job.job_id}: leased, failed, succeeded {told} in events, {happened} in runs")
    return faults
