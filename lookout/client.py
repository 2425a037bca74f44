"""A Python client of Tack's REST API: queues, retry policies, jobs, runs, decisions, events.

    from lookout.client import Client

    with Client.from_environment() as tack:
        tack.create_queue({"name": "nightly", "retryPolicies": ["oom-grow"]})
        for job in tack.jobs(queue=["nightly"], state=["failed"]):
            print(job.job_id, job.last_failure)

Every call may raise a `TackError`: what Tack refuses is a `Refused` (`NotFound`, `Conflict`, `Invalid` with its
problems, …), and a server that is away or slow has classes of its own. No call is repeated behind your back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lookout.wire.connection import Connection
from lookout.wire.cordons import Cordons
from lookout.wire.credentials import Credentials, find_credentials, tidy_address
from lookout.wire.errors import (
    AddressInvalid,
    AddressUnknown,
    Busy,
    Conflict,
    Invalid,
    NotFound,
    NothingAnswers,
    NotPermitted,
    NotSignedIn,
    Problem,
    Refused,
    TackError,
    TokenFileUnreadable,
    TokenInvalid,
    TooSlow,
    UnexpectedAnswer,
    Unsendable,
)
from lookout.wire.filters import Filters, FilterValue, filters_in, filters_of_address
from lookout.wire.history import History
from lookout.wire.life import Cancelled, JobSelection, LifeOfJobs, Preempting, Reprioritized
from lookout.wire.segments import segment as _segment
from lookout.wire.statistics import (
    FailureDay,
    FailureGroups,
    HeatMap,
    JobGroups,
    RuleRetries,
    Statistics,
)
from lookout.wire.streams import PATIENCE_SECONDS, EventSource
from lookout.wire.views import (
    Decision,
    Event,
    EventPage,
    Executor,
    Failure,
    Identity,
    Job,
    JobDetail,
    Node,
    PolicyCheck,
    Queue,
    RetryPolicy,
    Run,
    SubmittedJob,
)

__all__ = [
    "AddressInvalid",
    "AddressUnknown",
    "Busy",
    "Cancelled",
    "Client",
    "Conflict",
    "Decision",
    "Event",
    "EventPage",
    "Executor",
    "Failure",
    "FailureDay",
    "FailureGroups",
    "FilterValue",
    "Filters",
    "HeatMap",
    "Identity",
    "Invalid",
    "Job",
    "JobDetail",
    "JobGroups",
    "JobSelection",
    "Node",
    "NotFound",
    "NotPermitted",
    "NotSignedIn",
    "NothingAnswers",
    "PolicyCheck",
    "Preempting",
    "Problem",
    "Queue",
    "Refused",
    "Reprioritized",
    "RetryPolicy",
    "RuleRetries",
    "Run",
    "SubmittedJob",
    "TackError",
    "TokenFileUnreadable",
    "TokenInvalid",
    "TooSlow",
    "UnexpectedAnswer",
    "Unsendable",
    "filters_in",
    "filters_of_address",
]

TIMEOUT_SECONDS = 30.0
PAGE = 500

type Document = str | Mapping[str, Any]
"""A retry policy as text (YAML, JSON) or as an object."""


class Client(History, LifeOfJobs, Cordons, Statistics):
    """Speaks to one Tack as one person. Close it, or use it in a `with`; one thread at a time."""

    def __init__(self, url: str, *, token: str = "", timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        credentials = Credentials(url=tidy_address(url), token=token)
        self._connection = Connection(credentials, timeout_seconds=timeout_seconds)

    @classmethod
    def from_environment(
        cls, *, url: str = "", token_file: Path | None = None, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> Self:
        """The Tack named by the arguments, else by TACK_URL and TACK_TOKEN, else the one started here by `tack up`."""
        found = find_credentials(url=url, token_file=token_file)
        return cls(found.url, token=found.token, timeout_seconds=timeout_seconds)

    @property
    def url(self) -> str:
        """The address, without a slash at its end."""
        return self._connection.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection. Twice does no harm."""
        self._connection.close()

    def me(self) -> Identity:
        """On whose behalf the token speaks."""
        return self._connection.ask_for(Identity, "GET", "me")

    # Queues

    def queues(self) -> tuple[Queue, ...]:
        """Every queue, by name."""
        return self._list(Queue, "queues", key="queues")

    def queue(self, name: str) -> Queue:
        """One queue. Raises NotFound."""
        return self._connection.ask_for(Queue, "GET", f"queues/{_segment(name)}")

    def create_queue(self, spec: Mapping[str, Any]) -> Queue:
        """A new queue of these fields (`name` and what differs from the defaults). Raises Conflict if it exists."""
        return self._connection.ask_for(Queue, "POST", "queues", body=dict(spec))

    def update_queue(self, name: str, spec: Mapping[str, Any]) -> Queue:
        """Replace all fields of a queue: one left out goes back to its default. Raises NotFound."""
        return self._connection.ask_for(Queue, "PUT", f"queues/{_segment(name)}", body={**spec, "name": name})

    def delete_queue(self, name: str) -> None:
        """Delete a queue; one that does not exist is no error. Raises Conflict while it has jobs."""
        self._delete(f"queues/{_segment(name)}")

    def attach_retry_policies(self, queue: str, policies: Sequence[str]) -> Queue:
        """Replace the policies of a queue, in their order, and nothing else of it."""
        path = f"queues/{_segment(queue)}/retry-policies"
        return self._connection.ask_for(Queue, "PUT", path, body={"retryPolicies": list(policies)})

    # Retry policies

    def retry_policies(self) -> tuple[RetryPolicy, ...]:
        """The current version of every policy, by name."""
        return self._list(RetryPolicy, "retry-policies", key="retryPolicies")

    def retry_policy(self, name: str) -> RetryPolicy:
        """The current version of a policy. Raises NotFound."""
        return self._connection.ask_for(RetryPolicy, "GET", f"retry-policies/{_segment(name)}")

    def retry_policy_versions(self, name: str) -> tuple[RetryPolicy, ...]:
        """Every version of a policy, newest first; those of a deleted one are kept."""
        return self._list(RetryPolicy, f"retry-policies/{_segment(name)}/versions", key="versions")

    def create_retry_policy(self, document: Document, *, note: str = "", force: bool = False) -> RetryPolicy:
        """A new policy. Raises Conflict if it exists. `force` accepts categories no executor knows yet."""
        return self._write_policy("POST", "retry-policies", document, note=note, force=force)

    def update_retry_policy(
        self,
        name: str,
        document: Document,
        *,
        note: str = "",
        force: bool = False,
        based_on: int | None = None,
    ) -> RetryPolicy:
        """A new version of a policy. Raises NotFound, and Conflict when `based_on` is not the current version."""
        headers = {} if based_on is None else {"If-Match": f'"{based_on}"'}
        path = f"retry-policies/{_segment(name)}"
        return self._write_policy("PUT", path, document, headers=headers, note=note, force=force)

    def apply_retry_policy(self, document: Document, *, note: str = "", force: bool = False) -> RetryPolicy:
        """Create the policy or give it a new version, whichever is needed."""
        return self._write_policy("POST", "retry-policies", document, apply=True, note=note, force=force)

    def check_retry_policy(self, document: Document) -> PolicyCheck:
        """What is wrong with a document and what its rules do; nothing is written."""
        return self._connection.ask_for(PolicyCheck, "POST", "retry-policies/check", **_document(document))

    def delete_retry_policy(self, name: str, *, detach: bool = False) -> None:
        """Delete a policy; one that does not exist is no error. Raises Conflict while queues use it, unless `detach`."""
        self._delete(f"retry-policies/{_segment(name)}", query={"detach": detach})

    # Jobs

    def submit_jobs(self, job_file: Mapping[str, Any], *, dry_run: bool = False) -> tuple[SubmittedJob, ...]:
        """Submit the jobs of a job file. Raises Invalid with every problem's path. A dry run only checks."""
        answer = self._connection.ask("POST", "jobs", query={"dryRun": dry_run}, body=dict(job_file))
        return self._items(SubmittedJob, answer, key="jobs")

    def jobs(
        self,
        *,
        queue: Sequence[str] = (),
        state: Sequence[str] = (),
        ids: Sequence[str] = (),
        job_set: Sequence[str] = (),
        category_any: Sequence[str] = (),
        category_last: Sequence[str] = (),
        text: str = "",
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Jobs, newest first, page by page as they are asked for; at most `limit` of them.

        `text` is part of the name of the job set or of the owner.
        """
        filters = {
            "queue": queue,
            "state": state,
            "id": ids,
            "jobSet": job_set,
            "category.any": category_any,
            "category.last": category_last,
            "text": text,
        }
        return self._pages(Job, "jobs", key="jobs", query=filters, limit=limit)

    def job(self, job_id: str) -> JobDetail:
        """A job with its spec and its runs. Raises NotFound."""
        return self._connection.ask_for(JobDetail, "GET", f"jobs/{_segment(job_id)}")

    # Runs and decisions

    def runs(self, *, job_id: str) -> tuple[Run, ...]:
        """The runs of a job, oldest first."""
        return tuple(self._pages(Run, "runs", key="runs", query={"job": job_id}, limit=None))

    def run(self, run_id: str) -> Run:
        """One run. Raises NotFound."""
        return self._connection.ask_for(Run, "GET", f"runs/{_segment(run_id)}")

    def run_output(self, run_id: str) -> str:
        """What the run wrote, its head and tail where it wrote much. Raises NotFound where nothing is kept."""
        return self._connection.ask_for_text(f"runs/{_segment(run_id)}/output")

    def decisions(
        self, *, job_id: str = "", policy: str = "", verdict: Sequence[str] = (), limit: int | None = None
    ) -> Iterator[Decision]:
        """Decisions, newest first, page by page as they are asked for; of several verdicts, any."""
        query = {"job": job_id, "policy": policy, "verdict": verdict}
        return self._pages(Decision, "decisions", key="decisions", query=query, limit=limit)

    # Events

    def event_page(self, queue: str, job_set: str, *, after: int = 0, limit: int = PAGE) -> EventPage:
        """The events of a job set after a number, at most so many."""
        return self._source(queue, job_set).page(after=after, limit=limit)

    def events(self, queue: str, job_set: str, *, after: int = 0) -> Iterator[Event]:
        """Every event of a job set there is after a number."""
        return self._source(queue, job_set).past(after=after)

    def follow(
        self,
        queue: str,
        job_set: str,
        *,
        after: int = 0,
        patience_seconds: float = PATIENCE_SECONDS,
        pause: Callable[[float], None] | None = None,
    ) -> Iterator[Event]:
        """Events of a job set as they happen, for ever: none twice, none missed, also over restarts of Tack
        that take less than `patience_seconds`. `pause` replaces time.sleep between tries.
        """
        return self._source(queue, job_set, patience_seconds=patience_seconds, pause=pause).follow(
            after=after
        )

    # Fleet and people

    def executors(self) -> tuple[Executor, ...]:
        """The executors heard of."""
        return self._list(Executor, "executors", key="executors")

    def executor(self, name: str) -> Executor:
        """One executor with its nodes. Raises NotFound."""
        return self._connection.ask_for(Executor, "GET", f"executors/{_segment(name)}")

    def delete_executor(self, name: str) -> None:
        """Forget an executor; one that does not exist is no error. Raises Conflict while it reports or has runs."""
        self._delete(f"executors/{_segment(name)}")

    def sign_in_link(self) -> str:
        """The address of a new link that signs the token's owner in to the dashboard once, within ten minutes."""
        answer = self._object(self._connection.ask("POST", "sign-in-links"))
        path = str(answer.get("path") or "")
        if not path.startswith("/"):
            raise UnexpectedAnswer(self.url, "no sign-in link")
        return self.url + path

    # How answers are read

    def _source(self, queue: str, job_set: str, **waiting: Any) -> EventSource:
        given = {name: value for name, value in waiting.items() if value is not None}
        return EventSource(connection=self._connection, queue=queue, job_set=job_set, **given)

    def _object(self, answer: object) -> Mapping[str, Any]:
        if not isinstance(answer, dict):
            raise UnexpectedAnswer(self.url, f"{type(answer).__name__} where an object was due")
        return answer

    def _items[T](self, kind: type[T], answer: object, *, key: str) -> tuple[T, ...]:
        found = self._object(answer).get(key)
        if not isinstance(found, list):
            raise UnexpectedAnswer(self.url, f"no list under '{key}'")
        return tuple(self._connection.read(kind, item) for item in found)

    def _list[T](
        self, kind: type[T], path: str, *, key: str, query: Mapping[str, Any] | None = None
    ) -> tuple[T, ...]:
        return self._items(kind, self._connection.ask("GET", path, query=query), key=key)

    def _pages[T](
        self, kind: type[T], path: str, *, key: str, query: Mapping[str, Any], limit: int | None
    ) -> Iterator[T]:
        cursor: str | None = ""
        left = limit
        while cursor is not None and left != 0:
            size = PAGE if left is None else min(left, PAGE)
            answer = self._connection.ask("GET", path, query={**query, "limit": size, "cursor": cursor})
            items = self._items(kind, answer, key=key)
            yield from items[:left]
            left = None if left is None else max(left - len(items), 0)
            cursor = answer.get("next")

    def _write_policy(
        self,
        method: str,
        path: str,
        document: Document,
        *,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> RetryPolicy:
        sent = _document(document)
        return self._connection.ask_for(RetryPolicy, method, path, query=query, headers=headers, **sent)

    def _delete(self, path: str, *, query: Mapping[str, Any] | None = None) -> None:
        try:
            self._connection.ask("DELETE", path, query=query)
        except NotFound:
            return


def _document(document: Document) -> dict[str, Any]:
    if isinstance(document, str):
        return {"text": ("application/yaml", document)}
    return {"body": dict(document)}
