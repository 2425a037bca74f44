"""The story of the lost agent: its leases expire, the job runs elsewhere, and what it still runs is not its own any more."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookout.client import Conflict, Executor, JobDetail, Node
from lookout.story.narrating import Narrator, StoryBroke
from lookout.story.second_agent import NAME, NoSecondAgent, SecondAgent

POLICY = "lease-again"
QUEUE = "lease-again-queue"
POLICY_FILE = Path(__file__).with_name("lost-agent-policy.yaml")
JOB_FILE = Path(__file__).with_name("lost-agent-job.yaml")
_PLACE_OF_THE_FILE = "GO_ON_FILE"
_BUSY = "sleep 600"


def tell(narrator: Narrator, agent: SecondAgent) -> JobDetail:
    """Tell it all; the job as it is at the end. Raises StoryBroke, NoSecondAgent, CommandFailed and TackError."""
    narrator.say("The story of the lost agent\n")
    others = _others(narrator)
    narrator.say("1. A retry policy: after a lease that expired, again, once. And a queue that uses it.")
    narrator.make_policy(POLICY, POLICY_FILE)
    narrator.make_queue(QUEUE, POLICY)
    narrator.say(
        f"2. A second agent joins: executor {NAME} with one node, tainted so that only this story's job goes there. "
        "Jobs keep the other nodes busy."
    )
    agent.start()
    narrator.wait_until(lambda: _is_heard(narrator), otherwise=f"Executor {NAME} was not heard of.")
    busy = _keep_busy(narrator, others)
    try:
        job_id = _play(narrator, agent, busy)
    finally:
        narrator.client.cancel_jobs(busy, reason="the story is over")
    job = narrator.client.job(job_id)
    if job.state != "succeeded" or [run.executor == NAME for run in job.runs] != [True, False]:
        raise StoryBroke(f"The job should have succeeded at its second run; it is {job.state}.")
    narrator.say(f"\nThe job page: {narrator.client.url}/jobs/{job_id}")
    return job


def clear_up(narrator: Narrator) -> None:
    """Forget the executor of the second agent, which is stopped: at once if it could say so, else when it is silent."""
    narrator.wait_until(lambda: _is_forgotten(narrator), otherwise=f"Executor {NAME} cannot be deleted.")


def _is_forgotten(narrator: Narrator) -> bool:
    try:
        narrator.client.delete_executor(NAME)
    except Conflict:
        return False
    return True


def _play(narrator: Narrator, agent: SecondAgent, busy: Sequence[str]) -> str:
    """Follow the job, and do to the agent what the story wants; the job's id."""
    narrator.say(f"3. A job that works until the story lets it end. Only {NAME} has room.")
    values = {_PLACE_OF_THE_FILE: str(agent.file)}
    job_set, job_id = narrator.submit(JOB_FILE, job_set="lost-agent-story", values=values)
    narrator.say(f"4. What happens (tack watch {QUEUE} {job_set}):")
    begun = 0
    for event in narrator.events(QUEUE, job_set):
        begun += event.kind == "running"
        if event.kind == "running" and begun == 1:
            agent.kill()
            narrator.say(
                f"   The agent of {NAME} is killed; its job goes on. The other nodes are free again."
            )
            narrator.say("   What was not heard of for executorTimeout loses its leases …")
            narrator.client.cancel_jobs(busy, reason="the story needs the room")
        elif event.kind == "running":
            _come_back(narrator, agent, job_id)
    return job_id


def _come_back(narrator: Narrator, agent: SecondAgent, job_id: str) -> None:
    if not agent.has(job_id):
        raise StoryBroke(f"The run on {NAME} should still be at work.")
    agent.start()
    narrator.say(
        f"   The agent of {NAME} comes back and finds run 1 at work, which is not its own any more …"
    )
    narrator.wait_until(lambda: not agent.has(job_id), otherwise=f"{NAME} did not stop run 1.")
    narrator.say("   … it was told to stop it, and has. Run 2 may end now.")
    agent.file.touch()


def _others(narrator: Narrator) -> tuple[Executor, ...]:
    """The executors that the job is to find its way to."""
    heard = [each for each in narrator.client.executors() if each.name != NAME and not each.silent]
    if len(heard) != 1:
        names = ", ".join(each.name for each in heard) or "none"
        raise NoSecondAgent(
            f"This story keeps all other nodes busy, so it wants one other executor: {names}."
        )
    return tuple(heard)


def _is_heard(narrator: Narrator) -> bool:
    return any(each.name == NAME and each.nodes and not each.silent for each in narrator.client.executors())


def _keep_busy(narrator: Narrator, executors: Sequence[Executor]) -> list[str]:
    """Jobs that take all the CPU there is on these nodes, once they run; their ids."""
    jobs = [job for executor in executors for node in executor.nodes if (job := _filler(node))]
    if not jobs:
        return []
    asked = {"queue": QUEUE, "jobSetId": "lost-agent-story-busy", "jobs": jobs}
    ids = [each.job_id for each in narrator.client.submit_jobs(asked)]
    narrator.wait_until(
        lambda: all(narrator.client.job(each).state == "running" for each in ids),
        otherwise="The jobs that keep the other nodes busy do not run.",
    )
    return ids


def _filler(node: Node) -> dict[str, Any] | None:
    if node.capacity is None or node.used is None:
        return None
    free = node.capacity.cpu_millicores - node.used.cpu_millicores
    where = {key: value for key, value in node.labels.items() if value == node.name}
    if free <= 0 or not where:
        return None
    amounts = {"cpu": f"{free}m", "memory": "16Mi"}
    container = {
        "name": "busy",
        "command": ["sh", "-c", _BUSY],
        "resources": {"requests": amounts, "limits": amounts},
    }
    spec = {"terminationGracePeriodSeconds": 0, "nodeSelector": where, "containers": [container]}
    return {"priority": 0, "namespace": "default", "podSpec": spec}
