"""The agent's side of the executor API: heartbeats, work, reports, each one request; the wire format is `wire`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from scheduler.agent.wire import (
    heartbeat_json,
    outcomes_from_json,
    reports_json,
    work_from_json,
    work_request_json,
)
from scheduler.executors.protocol import Heartbeat, Report, ReportOutcome, Work, WorkRequest

PREFIX = "/api/executor/v1"
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 15.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class UnreachableError(Exception):
    """The scheduler did not answer, or not with an answer. Trying again later is right."""


class NotAllowedError(Exception):
    """The scheduler does not accept this agent; the text says why and what to do."""


class InvalidRequestError(Exception):
    """The scheduler found this request malformed. The same again would be refused again."""


class SchedulerClient:
    """One connection to the scheduler. Not shared between threads: each has its own."""

    def __init__(self, *, url: str, token_file: Path, executor: str) -> None:
        self._executor = executor
        self._token_file = token_file
        on_this_machine = urlsplit(url).hostname in _LOOPBACK
        self._http = httpx.Client(
            base_url=url.rstrip("/") + PREFIX,
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            trust_env=not on_this_machine,  # a proxy never leads to this machine
        )

    def heartbeat(self, heartbeat: Heartbeat) -> None:
        """Say that the executor is there and what it has."""
        self._post("/heartbeat", heartbeat_json(heartbeat))

    def work(self, request: WorkRequest) -> Work:
        """Ask what there is to do; the answer may take as long as the request allows."""
        waits = httpx.Timeout(_ANSWER_SECONDS + request.wait_seconds, connect=_CONNECT_SECONDS)
        return work_from_json(self._post("/work", work_request_json(request), timeout=waits))

    def report(self, reports: Sequence[Report]) -> tuple[ReportOutcome, ...]:
        """Tell about runs; an outcome for each."""
        return outcomes_from_json(self._post("/reports", reports_json(self._executor, reports)))

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def _post(self, path: str, body: Any, *, timeout: httpx.Timeout | None = None) -> Any:
        try:
            token = self._token_file.read_text(encoding="utf-8").strip()
            answer = self._http.post(
                path,
                json=body,
                headers={"Authorization": f"Bearer {token}"},
                timeout=timeout or self._http.timeout,
            )
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            raise UnreachableError(
                f"The scheduler cannot be reached: {str(error) or type(error).__name__}"
            ) from error
        return _content(answer)


def _content(answer: httpx.Response) -> Any:
    if answer.status_code in (401, 403):
        raise NotAllowedError(
            f"The scheduler does not accept this agent ({answer.status_code}): {_message(answer)} "
            "Check the token file and the executor's name."
        )
    if 400 <= answer.status_code < 500 and answer.status_code not in (408, 425, 429):
        raise InvalidRequestError(f"The scheduler refused ({answer.status_code}): {_message(answer)}")
    if answer.status_code >= 300:
        raise UnreachableError(f"The scheduler answered {answer.status_code}.")
    try:
        return answer.json()
    except ValueError as error:
        raise UnreachableError("The scheduler's answer is not JSON.") from error


def _message(answer: httpx.Response) -> str:
    try:
        found = answer.json()["error"]
        problems = "; ".join(f"{each['path']}: {each['message']}" for each in found.get("problems") or ())
        return " ".join(filter(None, (str(found["message"]), problems)))[:2000]
    except (ValueError, KeyError, TypeError, AttributeError):
        return answer.text[:200]
