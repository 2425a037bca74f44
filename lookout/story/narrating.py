"""Telling a story on a Tack that runs: every step as the command a person would type, then what came of it."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from lookout.client import Client, Event, RetryPolicy
from lookout.story.command_line import CHECKOUT, CommandLine
from policies.documents import DocumentInvalid, parse_policy_document, policy_from_object
from policies.quantity import rounded_bytes

PATIENCE_SECONDS = 240.0
_LOOK_SECONDS = 0.1
_JOB_ID = re.compile(r"\b[0-9a-hjkmnp-tv-z]{26}\b")


class StoryBroke(RuntimeError):
    """The story did not end as it should; the sentence says where."""


class Narrator:
    """Makes what a story needs on one Tack, and says what happens, a line at a time."""

    def __init__(self, *, tack: CommandLine, client: Client, say: Callable[[str], None]) -> None:
        self.tack = tack
        self.client = client
        self.say = say
        self._changed: dict[str, str] = {}

    def broken_by_a_change(self) -> str:
        """What to say where a story broke off: the policies of it that somebody changed; empty when none was."""
        return " ".join(self._changed.values())

    def make_policy(self, name: str, file: Path) -> None:
        """Make it unless it is there; what is there stays, as somebody may have changed it."""
        there = {policy.name: policy for policy in self.client.retry_policies()}
        if name in there:
            self.say(f"   {name} is there already.")
            if _differs(there[name], file):
                self._changed[name] = (
                    f"Retry policy {name} was changed: it is at version {there[name].version} and not what "
                    f"{_shown(file)} says. tack apply -f {_shown(file)} puts it back."
                )
                self.say(f"   {self._changed[name]}")
        else:
            self._show("create", "retry-policy", "-f", _shown(file))

    def make_queue(self, name: str, policy: str) -> None:
        """Make it unless it is there."""
        if name in {queue.name for queue in self.client.queues()}:
            self.say(f"   {name} is there already.")
        else:
            self._show("create", "queue", name, "--retry-policies", policy)

    def submit(self, file: Path, *, job_set: str, values: Mapping[str, str] | None = None) -> tuple[str, str]:
        """Submit the job of a file in a job set of its own, with other values where it has these words; both names."""
        job_set = f"{job_set}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        changes = {"^jobSetId: .*": f"jobSetId: {job_set}", **(values or {})}
        script = " ".join(f"-e 's|{word}|{value}|g'" for word, value in changes.items())
        self.say(f"   $ sed {script} {_shown(file)} | tack submit -")
        with _filled_in(file, job_set, values or {}) as filled:
            said = self.tack("submit", str(filled))
        self.say(f"   {said}")
        found = _JOB_ID.search(said)
        if found is None:
            raise StoryBroke(f"`tack submit` named no job: {said}")
        return job_set, found.group()

    def events(self, queue: str, job_set: str) -> Iterator[Event]:
        """The events of a job until it has ended, each said before it is given. Raises StoryBroke when that takes long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        runs, last = 0, 0
        while time.monotonic() < deadline:
            page = self.client.event_page(queue, job_set, after=last)
            for event in page.events:
                last = event.id
                runs += event.kind == "leased"
                if sentence := self._sentence(event, runs):
                    self.say(f"   {sentence}")
                yield event
                if event.kind in ("succeeded", "cancelled") or (
                    event.kind == "failed" and not event.retryable
                ):
                    return
            time.sleep(_LOOK_SECONDS)
        raise StoryBroke(f"The job of {job_set} has not ended within {PATIENCE_SECONDS:.0f} s.")

    def wait_until(self, holds: Callable[[], bool], *, otherwise: str) -> None:
        """Wait for something in the story. Raises StoryBroke with the sentence when it does not come."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise StoryBroke(otherwise)
            time.sleep(_LOOK_SECONDS)

    def _sentence(self, event: Event, runs: int) -> str:
        match event.kind:
            case "leased":
                memory = self._memory_of(event.job_id)
                return f"Run {runs} is leased to executor {event.fields.get('clusterId')}, with {memory}."
            case "running":
                node, name = event.fields.get("nodeName"), event.fields.get("podName")
                return f"Run {runs} is running on {node} as {name}."
            case "leaseExpired":
                return f"The lease of run {runs} has expired: nothing was heard of its executor."
            case "failed":
                again = "retryable: true, the same job is queued again" if event.retryable else "for good"
                return f"Run {runs} failed, category {_category(event)}; {again}.{self._why(event)}"
            case "succeeded":
                return f"Run {runs} succeeded."
        return ""

    def _why(self, event: Event) -> str:
        decisions = list(self.client.decisions(job_id=event.job_id, limit=1))
        return f"\n   {decisions[0].sentence}" if decisions else ""

    def _memory_of(self, job_id: str) -> str:
        runs = self.client.runs(job_id=job_id)
        limit = runs[-1].memory_limit_bytes if runs else None
        return f"{rounded_bytes(limit)} of memory" if limit else "no memory limit"

    def _show(self, *words: str) -> None:
        self.say(f"   $ tack {' '.join(words)}")
        said = self.tack(*(str(CHECKOUT / word) if word.endswith(".yaml") else word for word in words))
        self.say(f"   {said}")


def _category(event: Event) -> str:
    names = (event.fields.get("failureCategory"), event.fields.get("failureSubcategory"))
    return "/".join(str(name) for name in names if name) or "none"


def _differs(policy: RetryPolicy, file: Path) -> bool:
    try:
        return policy_from_object(policy.policy) != parse_policy_document(file.read_text())
    except DocumentInvalid:
        return True


def _shown(file: Path) -> str:
    return str(file.relative_to(CHECKOUT))


@contextmanager
def _filled_in(file: Path, job_set: str, values: Mapping[str, str]) -> Iterator[Path]:
    text = re.sub(r"(?m)^jobSetId: .*$", f"jobSetId: {job_set}", file.read_text())
    for word, value in values.items():
        text = text.replace(word, value)
    with tempfile.TemporaryDirectory(prefix="tack-story-") as folder:
        filled = Path(folder) / "job.yaml"
        filled.write_text(text)
        yield filled
