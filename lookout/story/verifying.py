"""What must be true from outside once a story was played: over REST, in the events, on the pages, on the command line."""

import html
import re

import httpx

from lookout.client import Client, JobDetail
from lookout.story import disk, lost_agent
from lookout.story.command_line import CommandLine
from lookout.story.expecting import equal, expect, step
from lookout.story.second_agent import NAME as SECOND_EXECUTOR
from lookout.story.telling import POLICY, QUEUE

MEBIBYTE = 1024 * 1024
_SENTENCE = f"Rule 1 of {POLICY} (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi"
_RUN = ("leased", "pending", "running")
MEMORY_EVENTS = ("submitted", "queued", *_RUN, "failed", *_RUN, "succeeded")
DISK_EVENTS = ("submitted", "queued", *_RUN, "failed", *_RUN, "failed")
LOST_AGENT_EVENTS = ("submitted", "queued", *_RUN, "leaseExpired", "failed", *_RUN, "succeeded")


def verify_memory_story(client: Client, *, tack: CommandLine, job: JobDetail) -> None:
    with step("REST: two runs, the first failed as oom and retryable, the second with twice the memory"):
        _verify_runs(job)
    with step("REST: one decision, by rule 1 of the policy, with its sentence"):
        _verify_decision(client, job)
    with step("events: every one of them, in order, numbered without gaps; failed says retryable"):
        _verify_events(client, job)
    with step("pages: a sign-in link works once; the job page shows both runs and why the first was retried"):
        _verify_pages(tack, job)
    with step("command line: the job, its runs and the policy as documents"):
        said = tack("get", "job", job.job_id)
        expect(
            "oom" in said and "succeeded" in said.lower(), f"`tack get job` does not tell the story: {said}"
        )
        expect(job.job_id in tack("get", "jobs"), "`tack get jobs` does not list the job.")
        expect("retryLimit: 2" in tack("get", "retry-policy", POLICY), "`tack get retry-policy` differs.")


def _verify_pages(tack: CommandLine, job: JobDetail) -> None:
    """Sign in by a link, as a browser without JavaScript does, and read the job's page."""
    link = tack("login").split()[-1]
    with httpx.Client(follow_redirects=True, trust_env=False, timeout=30) as browser:
        form = browser.get(link)
        equal("status of the sign-in page", form.status_code, 200)
        hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
        expect(hidden is not None, "The sign-in page has no form.")
        browser.post(
            link, data={"csrfmiddlewaretoken": hidden[1] if hidden else ""}, headers={"Referer": link}
        )
        page = browser.get(httpx.URL(link).join(f"/jobs/{job.job_id}"))
        equal("status of the job page", page.status_code, 200)
        text = html.unescape(re.sub(r"<[^>]+>|\s+", " ", page.text))
        for word in ("oom", "retryable", _SENTENCE, "succeeded"):
            expect(_folded(word) in _folded(text), f"The job page does not say '{word}'.")
        again = browser.post(
            link,
            data={"csrfmiddlewaretoken": browser.cookies.get("csrftoken", "")},
            headers={"Referer": link},
        )
        equal("status of a sign-in link used twice", again.status_code, 410)


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).casefold()


def _verify_runs(job: JobDetail) -> None:
    expect(len(job.runs) == 2, f"There should be two runs; there are {len(job.runs)}.")
    first, second = job.runs
    equal("state of run 1", first.state, "failed")
    equal("category of run 1", first.category, "oom")
    expect(first.retryable is True, "Run 1 should have the retryable mark.")
    equal("memory limit of run 1", first.memory_limit_bytes, 64 * MEBIBYTE)
    equal("state of run 2", second.state, "succeeded")
    equal("exit code of run 2", second.exit_code, 0)
    equal("memory limit of run 2", second.memory_limit_bytes, 128 * MEBIBYTE)


def _verify_decision(client: Client, job: JobDetail) -> None:
    decisions = list(client.decisions(job_id=job.job_id))
    expect(len(decisions) == 1, f"There should be one decision; there are {len(decisions)}.")
    (decision,) = decisions
    equal("verdict", decision.verdict, "retry")
    equal("policy", decision.policy, POLICY)
    equal("rule", decision.rule_index, 0)
    equal(
        "memory before and after",
        (decision.memory_from_bytes, decision.memory_to_bytes),
        (64 * MEBIBYTE, 128 * MEBIBYTE),
    )
    expect(_SENTENCE in decision.sentence, f"The sentence should be: {_SENTENCE}. It is: {decision.sentence}")


def _verify_events(client: Client, job: JobDetail) -> None:
    events = list(client.events(QUEUE, job.job_set_id))
    equal("events", tuple(event.kind for event in events), MEMORY_EVENTS)
    equal("numbers of the events", [event.id for event in events], list(range(1, len(events) + 1)))
    (failed,) = (event for event in events if event.kind == "failed")
    expect(failed.retryable, "The failed event should say retryable: true.")
    equal("category of the failed event", failed.fields.get("failureCategory"), "oom")
    names = {event.fields["podName"] for event in events if "podName" in event.fields}
    equal("names of the runs' remains", names, {f"armada-{job.job_id}-0"})


def verify_disk_story(client: Client, job: JobDetail) -> None:
    with step("REST: a run on each node, both of category disk, the first retryable and the second not"):
        ends = [(run.state, run.category, run.retryable) for run in job.runs]
        equal("runs", ends, [("failed", "disk", True), ("failed", "disk", False)])
        equal("nodes of the runs", {run.node for run in job.runs}, {"local-1", "local-2"})
    with step("REST: the job has failed because no node is left where it was not tried"):
        decisions = list(client.decisions(job_id=job.job_id))[::-1]
        equal("verdicts", [each.verdict for each in decisions], ["retry", "retry_unschedulable"])
        equal("nodes avoided after run 1", decisions[0].avoids_nodes, (job.runs[0].node,))
        equal("state of the job", job.state, "failed")
    with step("events: the last one says so too"):
        events = list(client.events(disk.QUEUE, job.job_set_id))
        equal("events", tuple(event.kind for event in events), DISK_EVENTS)
        equal("retryable", [event.retryable for event in events if event.kind == "failed"], [True, False])
        expect(decisions[1].reason in events[-1].reason, f"The last event says: {events[-1].reason}")


def verify_lost_agent_story(client: Client, job: JobDetail) -> None:
    with step("REST: run 1 lost its lease on demo and was retried, run 2 succeeded elsewhere"):
        first, second = job.runs
        equal("executor of run 1", first.executor, SECOND_EXECUTOR)
        equal("end of run 1", (first.state, str(first.failure)), ("lease_expired", "internal/lease-expired"))
        expect(first.retryable is True, "Run 1 should have the retryable mark.")
        equal("end of run 2", (second.state, second.executor), ("succeeded", "local"))
    with step("REST: the executor of the second agent is forgotten, and its run is not"):
        equal("executors", [executor.name for executor in client.executors()], ["local"])
    with step("REST: one decision, by the rule about internal/lease-expired"):
        (decision,) = client.decisions(job_id=job.job_id)
        equal("verdict", (decision.verdict, decision.policy), ("retry", lost_agent.POLICY))
    with step("events: leaseExpired, and failed with retryable; nothing of what run 1 did afterwards"):
        events = list(client.events(lost_agent.QUEUE, job.job_set_id))
        equal("events", tuple(event.kind for event in events), LOST_AGENT_EVENTS)
