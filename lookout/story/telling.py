"""The out-of-memory story, told as it happens: 64Mi are not enough, the policy doubles them, the job succeeds."""

from pathlib import Path

from lookout.client import JobDetail
from lookout.story.narrating import Narrator, StoryBroke

POLICY = "oom-grow"
QUEUE = "oom-grow-queue"
POLICY_FILE = Path(__file__).with_name("policy.yaml")
JOB_FILE = Path(__file__).with_name("job.yaml")


class Teller:
    """Tells the story, or a part of it at a time."""

    def __init__(self, narrator: Narrator) -> None:
        self._narrator = narrator

    def tell(self) -> JobDetail:
        """Tell it all; the job as it is at the end. Raises StoryBroke, CommandFailed and TackError."""
        say = self._narrator.say
        say("The out-of-memory story\n")
        self.make_policy_and_queue()
        job_set, job_id = self.submit()
        job = self.follow(job_set, job_id)
        say(f"\nThe job page: {self._narrator.client.url}/jobs/{job_id}")
        return job

    def make_policy_and_queue(self) -> None:
        """Make what is not there yet; what is there stays as somebody may have changed it."""
        self._narrator.say(
            "1. A retry policy: after a failure of category oom, again with twice the memory, twice at most."
        )
        self._narrator.make_policy(POLICY, POLICY_FILE)
        self._narrator.say("2. A queue that uses it.")
        self._narrator.make_queue(QUEUE, POLICY)

    def submit(self) -> tuple[str, str]:
        """Submit the job in a job set of its own; the names of both."""
        self._narrator.say("3. A job that writes 100Mi into memory and may use 64Mi.")
        return self._narrator.submit(JOB_FILE, job_set="oom-story")

    def follow(self, job_set: str, job_id: str) -> JobDetail:
        """Say what happens to the job until it has ended. Raises StoryBroke when it does not end well."""
        self._narrator.say(f"4. What happens (tack watch {QUEUE} {job_set}):")
        for _ in self._narrator.events(QUEUE, job_set):
            pass
        job = self._narrator.client.job(job_id)
        if job.state != "succeeded":
            raise StoryBroke(f"The job should have succeeded; it is {job.state}.")
        return job
