"""The story of the bad disk: a job that fails on one node is moved to the other, and to no third one, as there is none."""

from pathlib import Path

from lookout.client import JobDetail
from lookout.story.narrating import Narrator, StoryBroke
from lookout.story.second_agent import NAME as SECOND_EXECUTOR

POLICY = "disk-elsewhere"
QUEUE = "disk-elsewhere-queue"
POLICY_FILE = Path(__file__).with_name("disk-policy.yaml")
JOB_FILE = Path(__file__).with_name("disk-job.yaml")


def tell(narrator: Narrator) -> JobDetail:
    """Tell it all; the job as it is at the end. Raises StoryBroke, CommandFailed and TackError."""
    narrator.say("The story of the bad disk\n")
    _await_two_nodes(narrator)
    narrator.say("1. A retry policy: after a failure of category disk, again on a node not tried yet.")
    narrator.make_policy(POLICY, POLICY_FILE)
    narrator.say("2. A queue that uses it.")
    narrator.make_queue(QUEUE, POLICY)
    narrator.say("3. A job that cannot read its disk, wherever it runs.")
    job_set, job_id = narrator.submit(JOB_FILE, job_set="disk-story")
    narrator.say(f"4. What happens (tack watch {QUEUE} {job_set}):")
    for _ in narrator.events(QUEUE, job_set):
        pass
    job = narrator.client.job(job_id)
    if job.state != "failed" or len({run.node for run in job.runs}) < len(job.runs):
        nodes = ", ".join(f"{run.node} {run.state}" for run in job.runs)
        raise StoryBroke(f"The job should have failed once on each node; it is {job.state}: {nodes}.")
    narrator.say(f"\nThe job page: {narrator.client.url}/jobs/{job_id}")
    return job


def _await_two_nodes(narrator: Narrator) -> None:
    """Told again soon after the third story, its executor still counts: a job could wait for that in vain."""

    def is_remembered() -> bool:
        return any(
            executor.name == SECOND_EXECUTOR and not executor.silent
            for executor in narrator.client.executors()
        )

    if is_remembered():
        narrator.say(
            f"0. Executor {SECOND_EXECUTOR} of an earlier story still counts; waiting until it does not."
        )
        narrator.wait_until(lambda: not is_remembered(), otherwise="It still counts.")
