"""The out-of-memory story, told as it happens: 64Mi are not enough, the policy doubles them, the job succeeds."""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from lookout.client import Client, Event, JobDetail
from lookout.story.command_line import CHECKOUT, CommandLine
from policies.quantity import rounded_bytes

POLICY = "oom-grow"
QUEUE = "oom-grow-queue"
POLICY_FILE = Path(__file__).with_name("policy.yaml")
JOB_FILE = Path(__file__).with_name("job.yaml")
PATIENCE_SECONDS = 120.0
_JOB_ID = re.compile(r"\b[0-9a-hjkmnp-tv-z]{26}\b")


class StoryBroke(RuntimeError):
    """The story did not end as it should; the sentence says where."""


class Teller:
    """Tells the story on one Tack, a line at a time."""

    def __init__(self, *, tack: CommandLine, client: Client, say: Callable[[str], None]) -> None:
        self._tack = tack
        self._client = client
        self._say = say

    def tell(self) -> JobDetail:
        """Tell it all; the job as it is at the end. Raises StoryBroke, CommandFailed and TackError."""
        self._say("The out-of-memory story\n")
        self.make_policy_and_queue()
        job_set, job_id = self.submit()
        job = self.follow(job_set, job_id)
        self._say(f"\nThe job page: {self._client.url}/jobs/{job_id}")
        return job

    def make_policy_and_queue(self) -> None:
        """Make what is not there yet; what is there stays as somebody may have changed it."""
        self._say(
            "1. A retry policy: after a failure of category oom, again with twice the memory, twice at most."
        )
        if POLICY in {policy.name for policy in self._client.retry_policies()}:
            self._say(f"   {POLICY} is there already.")
        else:
            self._show("create", "retry-policy", "-f", _shown(POLICY_FILE))
        self._say("2. A queue that uses it.")
        if QUEUE in {queue.name for queue in self._client.queues()}:
            self._say(f"   {QUEUE} is there already.")
        else:
            self._show("create", "queue", QUEUE, "--retry-policies", POLICY)

    def submit(self) -> tuple[str, str]:
        """Submit the job in a job set of its own; the names of both."""
        self._say("3. A job that writes 100Mi into memory and may use 64Mi.")
        job_set = f"oom-story-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        self._say(f"   $ tack submit {_shown(JOB_FILE)}")
        with _job_file(job_set) as file:
            said = self._tack("submit", str(file))
        self._say(f"   {said}")
        found = _JOB_ID.search(said)
        if found is None:
            raise StoryBroke(f"`tack submit` named no job: {said}")
        return job_set, found.group()

    def follow(self, job_set: str, job_id: str) -> JobDetail:
        """Say what happens to the job until it has ended. Raises StoryBroke when it does not end well."""
        self._say(f"4. What happens (tack watch {QUEUE} {job_set}):")
        runs = 0
        for event in self._client.follow(QUEUE, job_set, patience_seconds=PATIENCE_SECONDS):
            runs += event.kind == "leased"
            if sentence := self._sentence(event, runs):
                self._say(f"   {sentence}")
            if event.kind in ("succeeded", "cancelled") or (event.kind == "failed" and not event.retryable):
                break
        job = self._client.job(job_id)
        if job.state != "succeeded":
            raise StoryBroke(f"The job should have succeeded; it is {job.state}.")
        return job

    def _sentence(self, event: Event, runs: int) -> str:
        if event.kind == "leased":
            memory = self._memory_of(event.job_id)
            return f"Run {runs} is leased to executor {event.fields.get('clusterId')}, with {memory}."
        if event.kind == "running":
            return (
                f"Run {runs} is running on {event.fields.get('nodeName')} as {event.fields.get('podName')}."
            )
        if event.kind == "failed":
            again = "retryable: true, the same job is queued again" if event.retryable else "for good"
            return f"Run {runs} failed, category {event.fields.get('failureCategory') or 'none'}; {again}.{self._why(event)}"
        if event.kind == "succeeded":
            return f"Run {runs} succeeded."
        return ""

    def _why(self, event: Event) -> str:
        decisions = list(self._client.decisions(job_id=event.job_id, limit=1))
        return f"\n   {decisions[0].sentence}" if decisions else ""

    def _memory_of(self, job_id: str) -> str:
        runs = self._client.runs(job_id=job_id)
        limit = runs[-1].memory_limit_bytes if runs else None
        return f"{rounded_bytes(limit)} of memory" if limit else "no memory limit"

    def _show(self, *words: str) -> None:
        self._say(f"   $ tack {' '.join(words)}")
        said = self._tack(*(str(CHECKOUT / word) if word.endswith(".yaml") else word for word in words))
        self._say(f"   {said}")


def _shown(file: Path) -> str:
    return str(file.relative_to(CHECKOUT))


@contextmanager
def _job_file(job_set: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tack-story-") as folder:
        file = Path(folder) / "job.yaml"
        file.write_text(re.sub(r"(?m)^jobSetId: .*$", f"jobSetId: {job_set}", JOB_FILE.read_text()))
        yield file
