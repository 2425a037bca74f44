"""`tack up --check`: the story on a Tack of its own, verified from outside: command line, REST, events, pages."""

import html
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from lookout.client import Client, JobDetail, TackError
from lookout.story.command_line import CHECKOUT, CommandFailed, CommandLine
from lookout.story.telling import POLICY, QUEUE, StoryBroke, Teller

MEBIBYTE = 1024 * 1024
START_SECONDS = 120.0
STOP_SECONDS = 60.0
_LINES_OF_A_LOG = 25
_SENTENCE = f"Rule 1 of {POLICY} (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi"
EVENT_KINDS = (
    *("submitted", "queued", "leased", "pending", "running", "failed"),
    *("leased", "pending", "running", "succeeded"),
)
_NOT_OURS = (
    "DATABASE_URL",
    "BROKER_URL",
    "TACK_CONFIG",
    "TACK_URL",
    "TACK_TOKEN",
    "TACK_SECRET_KEY",
    "TACK_PORT",
)


class CheckFailed(RuntimeError):
    """Something is not as the story promises."""


def check(*, keep: bool) -> int:
    """Play and verify the story; a line per step. The exit code: 0 when all of it held.

    The scratch folder is removed, unless `keep` says otherwise or something failed.
    """
    scratch = Path(tempfile.mkdtemp(prefix="tack-check-"))
    # Others may pass through: started by root, the database can run as another user, and so do jobs.
    scratch.chmod(0o711)
    started = time.monotonic()
    try:
        _play(scratch)
    except (
        CheckFailed,
        StoryBroke,
        CommandFailed,
        TackError,
        httpx.HTTPError,
        OSError,
        subprocess.SubprocessError,
    ) as error:
        _show_logs(scratch)
        print(f"not ok  {error}\nLogs and data are in {scratch}.", flush=True)
        return 1
    except KeyboardInterrupt:
        print("stopped")
        return 1
    if keep:
        print(f"The scratch folder is {scratch}.")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"The out-of-memory story holds: {time.monotonic() - started:.1f} s.", flush=True)
    return 0


def _play(scratch: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    environment["TACK_VAR"] = str(scratch / "var")
    with _running(scratch, environment) as up:
        with _step("Tack starts on a scratch folder, with an executor of two nodes"):
            client = _wait_for_the_start(up, scratch)
        with client:
            teller = Teller(tack=CommandLine(environment=environment), client=client, say=lambda _: None)
            with _step("the command line makes the policy and the queue"):
                teller.make_policy_and_queue()
            with _step("the command line submits a job of 64Mi that writes 100Mi"):
                job_set, job_id = teller.submit()
            with _step("the job runs out of memory, is tried again with 128Mi and succeeds"):
                job = teller.follow(job_set, job_id)
            _verify(client, tack=CommandLine(environment=environment), job=job)
        with _step("Ctrl-C stops everything, in order, with exit code 0"):
            _stop(up)


def _verify(client: Client, *, tack: CommandLine, job: JobDetail) -> None:
    with _step("REST: two runs, the first failed as oom and retryable, the second with twice the memory"):
        _verify_runs(job)
    with _step("REST: one decision, by rule 1 of the policy, with its sentence"):
        _verify_decision(client, job)
    with _step("events: every one of them, in order, numbered without gaps; failed says retryable"):
        _verify_events(client, job)
    with _step(
        "pages: a sign-in link works once; the job page shows both runs and why the first was retried"
    ):
        _verify_pages(tack, job)
    with _step("command line: the job, its runs and the policy as documents"):
        said = tack("get", "job", job.job_id)
        _expect(
            "oom" in said and "succeeded" in said.lower(), f"`tack get job` does not tell the story: {said}"
        )
        _expect(job.job_id in tack("get", "jobs"), "`tack get jobs` does not list the job.")
        _expect("retryLimit: 2" in tack("get", "retry-policy", POLICY), "`tack get retry-policy` differs.")


def _verify_pages(tack: CommandLine, job: JobDetail) -> None:
    """Sign in by a link, as a browser without JavaScript does, and read the job's page."""
    link = tack("login").split()[-1]
    with httpx.Client(follow_redirects=True, trust_env=False, timeout=30) as browser:
        form = browser.get(link)
        _equal("status of the sign-in page", form.status_code, 200)
        hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
        _expect(hidden is not None, "The sign-in page has no form.")
        browser.post(
            link, data={"csrfmiddlewaretoken": hidden[1] if hidden else ""}, headers={"Referer": link}
        )
        page = browser.get(httpx.URL(link).join(f"/jobs/{job.job_id}"))
        _equal("status of the job page", page.status_code, 200)
        text = html.unescape(re.sub(r"<[^>]+>|\s+", " ", page.text))
        for word in ("oom", "retryable", _SENTENCE, "succeeded"):
            _expect(_folded(word) in _folded(text), f"The job page does not say '{word}'.")
        again = browser.post(
            link,
            data={"csrfmiddlewaretoken": browser.cookies.get("csrftoken", "")},
            headers={"Referer": link},
        )
        _equal("status of a sign-in link used twice", again.status_code, 410)


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).casefold()


def _verify_runs(job: JobDetail) -> None:
    _expect(len(job.runs) == 2, f"There should be two runs; there are {len(job.runs)}.")
    first, second = job.runs
    _equal("state of run 1", first.state, "failed")
    _equal("category of run 1", first.category, "oom")
    _expect(first.retryable is True, "Run 1 should have the retryable mark.")
    _equal("memory limit of run 1", first.memory_limit_bytes, 64 * MEBIBYTE)
    _equal("state of run 2", second.state, "succeeded")
    _equal("exit code of run 2", second.exit_code, 0)
    _equal("memory limit of run 2", second.memory_limit_bytes, 128 * MEBIBYTE)


def _verify_decision(client: Client, job: JobDetail) -> None:
    decisions = list(client.decisions(job_id=job.job_id))
    _expect(len(decisions) == 1, f"There should be one decision; there are {len(decisions)}.")
    (decision,) = decisions
    _equal("verdict", decision.verdict, "retry")
    _equal("policy", decision.policy, POLICY)
    _equal("rule", decision.rule_index, 0)
    _equal(
        "memory before and after",
        (decision.memory_from_bytes, decision.memory_to_bytes),
        (64 * MEBIBYTE, 128 * MEBIBYTE),
    )
    _expect(
        _SENTENCE in decision.sentence, f"The sentence should be: {_SENTENCE}. It is: {decision.sentence}"
    )


def _verify_events(client: Client, job: JobDetail) -> None:
    events = list(client.events(QUEUE, job.job_set_id))
    _equal("events", tuple(event.kind for event in events), EVENT_KINDS)
    _equal("numbers of the events", [event.id for event in events], list(range(1, len(events) + 1)))
    (failed,) = (event for event in events if event.kind == "failed")
    _expect(failed.retryable, "The failed event should say retryable: true.")
    _equal("category of the failed event", failed.fields.get("failureCategory"), "oom")
    names = {event.fields["podName"] for event in events if "podName" in event.fields}
    _equal("names of the runs' remains", names, {f"armada-{job.job_id}-0"})


@contextmanager
def _running(scratch: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    printed = scratch / "up.log"
    printed.touch(mode=0o600)  # it holds a sign-in link
    with printed.open("wb") as log:
        up = subprocess.Popen(
            [sys.executable, "-P", "-m", "lookout.embedded", "--no-story", "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**environment, "PYTHONPATH": str(CHECKOUT)},
            start_new_session=True,
        )
    try:
        yield up
    finally:
        with suppress(subprocess.TimeoutExpired):
            up.send_signal(signal.SIGINT)
            up.wait(STOP_SECONDS)
        if up.poll() is None:
            up.kill()
            up.wait()


def _wait_for_the_start(up: subprocess.Popen[bytes], scratch: Path) -> Client:
    token_file = scratch / "var" / "token"

    def started() -> Client | None:
        _expect(
            up.poll() is None, f"`tack up` ended: {(scratch / 'up.log').read_text(errors='replace')[-2000:]}"
        )
        if not token_file.exists():
            return None
        client = Client.from_environment(token_file=token_file)
        with suppress(TackError):
            if any(len(executor.nodes) == 2 for executor in client.executors()):
                return client
        client.close()
        return None

    return _eventually(started, seconds=START_SECONDS, otherwise="No executor with two nodes was heard of")


def _stop(up: subprocess.Popen[bytes]) -> None:
    up.send_signal(signal.SIGINT)
    try:
        code = up.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise CheckFailed(f"It has not stopped within {STOP_SECONDS:.0f} s.") from error
    _equal("exit code", code, 0)


def _show_logs(scratch: Path) -> None:
    for log in sorted((scratch / "var" / "log").glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-_LINES_OF_A_LOG:]
        print("\n".join([f"-- the end of {log.name}", *lines]), flush=True)


@contextmanager
def _step(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"ok  {time.monotonic() - started:6.1f} s  {what}", flush=True)


def _eventually[T](look: Callable[[], T | None], *, seconds: float, otherwise: str) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.1)
    raise CheckFailed(f"{otherwise} within {seconds:.0f} s.")


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise CheckFailed(otherwise)


def _equal(what: str, found: object, wanted: object) -> None:
    _expect(found == wanted, f"{what[0].upper()}{what[1:]} should be {wanted}; found {found}.")
