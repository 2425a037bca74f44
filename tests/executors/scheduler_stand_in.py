"""The scheduler as an agent sees it: a small HTTP server that leases runs and takes reports."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

type Json = dict[str, Any]

TOKEN = "token-of-local"
PATIENCE = 20.0
UNSAID: Json = {
    "ageSeconds": 0.0, "node": "", "podName": "", "exitCode": None, "signal": None, "category": "",
    "subcategory": "", "hint": "", "message": "", "reason": "", "containers": [], "attempted": True,
    "memoryPeakBytes": None, "killedBy": "", "enforcedBy": "", "warnings": [], "output": None,
}  # fmt: skip
"""What a report means where it says nothing."""


class SchedulerStandIn:
    """Hands out what is leased until it hears of it, keeps every report, and can be out of order."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.heartbeats: list[Json] = []
        self.requests: list[Json] = []
        self.reports: list[Json] = []
        """In order of arrival, each with `arrived`, a monotonic time."""
        self.is_down = False
        self.refuses_malformed: Callable[[Json], bool] = lambda report: False
        self._leased: dict[str, Json] = {}
        self._stops: dict[str, Json] = {}
        self._forgets: set[str] = set()
        self.misses: set[str] = set()
        """Runs it takes to be at work."""
        self._seen: set[tuple[str, str]] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def lease(self, script: str = "true", *, job: str = "", memory_bytes: int = 0, **spec: Any) -> str:
        """Lease a run of `/bin/sh -c SCRIPT`; its id."""
        run_id = str(uuid.uuid4())
        job = job or uuid.uuid4().hex
        containers = [{"name": "main", "image": "any", "command": ["/bin/sh", "-c", script]}]
        lease = {
            "runId": run_id, "jobId": job, "jobSetId": "set", "queue": "queue", "namespace": "default",
            "owner": "alice", "number": 1, "node": "local-1", "podName": f"armada-{job}-0",
            "podSpec": {"containers": containers, **spec}, "memoryBytes": memory_bytes,
            "annotations": {}, "labels": {},
        }  # fmt: skip
        with self.changed:
            self._leased[run_id] = lease
            self.changed.notify_all()
        return run_id

    def stop(self, run_id: str, grace_seconds: float | None = None) -> None:
        with self.changed:
            self._stops[run_id] = {"runId": run_id, "graceSeconds": grace_seconds, "reason": "cancelled"}
            self.changed.notify_all()

    def forget(self, run_id: str) -> None:
        with self.changed:
            self._leased.pop(run_id, None)
            self._forgets.add(run_id)
            self.changed.notify_all()

    def go(self, *, down: bool) -> None:
        """Stop answering sensibly, or start again."""
        with self.changed:
            self.is_down = down
            self.changed.notify_all()

    def reports_of(self, run_id: str) -> list[Json]:
        return [report for report in self.reports if report["runId"] == run_id]

    def wait_for(self, run_id: str, state: str) -> Json:
        """The report of that state, waited for. An end of another kind is an error at once."""
        return self.wait_until(lambda: self._found(run_id, state))

    def wait_for_end(self, run_id: str) -> Json:
        ends = ("succeeded", "failed", "leaseReturned", "cancelled")
        return self.wait_until(
            lambda: next((each for each in self.reports_of(run_id) if each["state"] in ends), None)
        )

    def wait_until[T](self, found: Callable[[], T | None], patience: float = PATIENCE) -> T:
        until = time.monotonic() + patience
        with self.changed:
            while (answer := found()) is None:
                left = until - time.monotonic()
                assert left > 0, f"did not come within {patience} s; reports: {self.reports}"
                self.changed.wait(left)
            return answer

    def _found(self, run_id: str, state: str) -> Json | None:
        mine = self.reports_of(run_id)
        for report in mine:
            if report["state"] == state:
                return report
        ended = [each for each in mine if each["state"] not in ("pending", "running")]
        assert not ended, f"ended as {ended[0]['state']}: {ended[0]['message']}"
        return None

    def answer(self, path: str, body: Json) -> tuple[int, Json]:
        with self.changed:
            if self.is_down:
                return 503, {}
            if path.endswith("/heartbeat"):
                self.heartbeats.append(body | {"arrived": time.monotonic()})
                self.changed.notify_all()
                return 200, {}
            return (200, self._work(body)) if path.endswith("/work") else self._report(body)

    def _work(self, body: Json) -> Json:
        self.requests.append(body)
        self.changed.notify_all()
        known, stopping = set(body["runs"]), set(body["stopping"])
        until = time.monotonic() + body["waitSeconds"]
        while True:
            answer = {
                "leases": [lease for run_id, lease in self._leased.items() if run_id not in known],
                "stop": [
                    stop for run_id, stop in self._stops.items() if run_id not in self._ended() | stopping
                ],
                "forget": sorted(self._forgets & known),
                "missed": sorted(self.misses - known - self._ended()),
            }
            if any(answer.values()) or self.is_down or (left := until - time.monotonic()) <= 0:
                return answer
            self.changed.wait(left)

    def _ended(self) -> set[str]:
        return {each["runId"] for each in self.reports if each["state"] not in ("pending", "running")}

    def _report(self, body: Json) -> tuple[int, Json]:
        reports = [UNSAID | each for each in body["reports"]]
        bad = [each for each in reports if self.refuses_malformed(each)]
        if bad:
            problems = [{"path": "reports[0].message", "message": "is too long"}]
            return 400, {"error": {"code": "invalid", "message": "Malformed.", "problems": problems}}
        outcomes = []
        for report in reports:
            key = (report["runId"], report["state"])
            outcomes.append(
                {"runId": report["runId"], "outcome": "unchanged" if key in self._seen else "recorded"}
            )
            self._seen.add(key)
            self._leased.pop(report["runId"], None)
            self.reports.append(report | {"arrived": time.monotonic()})
        self.changed.notify_all()
        return 200, {"outcomes": outcomes}

    def close(self) -> None:
        self.go(down=True)
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _handler(stand_in: SchedulerStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            allowed = self.headers["Authorization"] == f"Bearer {TOKEN}"
            status, answer = stand_in.answer(self.path, body) if allowed else (401, {})
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle(self) -> None:
            with suppress(
                ConnectionResetError, BrokenPipeError
            ):  # an agent was killed in the middle of a request
                super().handle()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def stand_in() -> Iterator[SchedulerStandIn]:
    with SchedulerStandIn() as scheduler:
        yield scheduler
