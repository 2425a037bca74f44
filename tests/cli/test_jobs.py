"""`tack submit`, `get jobs`, `get job`: what people read, and what programs read."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from lookout.cli.printing import age, plain, span
from tests.cli.answers import JOB_ID, SENTENCE, failed_run, job_view, run_view
from tests.cli.conftest import Tack
from tests.cli.small_server import Answer, SmallServer, refusal

FILE = """\
queue: nightly
jobSetId: report
jobs:
  - clientId: first
    podSpec:
      containers:
        - name: main
          image: none
          command: [sh, -c, "true"]
          resources: {limits: {memory: 64Mi, cpu: 100m}, requests: {memory: 64Mi, cpu: 100m}}
"""


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(FILE)
    return path


def test_submit_sends_the_file_and_tells_the_ids(server: SmallServer, tack: Tack, job_file: Path) -> None:
    answer = {"jobs": [{"jobId": "a", "clientId": None, "created": True}]}
    server.on("POST jobs", answer, status=201)
    said = tack("submit", str(job_file))
    assert (said.code, said.out) == (0, "Submitted job with id a to job set report\n")
    assert server.asked[-1].body == yaml.safe_load(FILE)
    assert server.asked[-1].query == {}


def test_a_second_submission_of_the_same_client_id_is_told(
    server: SmallServer, tack: Tack, job_file: Path
) -> None:
    server.on("POST jobs", {"jobs": [{"jobId": "a", "clientId": "first", "created": False}]})
    assert tack("submit", str(job_file)).out == (
        "Submitted job with id a to job set report (it was there already, with client id first)\n"
    )


def test_a_dry_run_has_tack_check_the_file(server: SmallServer, tack: Tack, job_file: Path) -> None:
    server.on("POST jobs", {"jobs": []})
    said = tack("submit", str(job_file), "--dry-run")
    assert said.out == f"{job_file} is valid. Nothing was submitted.\n"
    assert server.asked[-1].query == {"dryRun": ["true"]}


def test_problems_of_a_job_file_are_told_by_line(server: SmallServer, tack: Tack, job_file: Path) -> None:
    problems = [
        {
            "path": "jobs[0].podSpec.containers[0].resources.limits.memory",
            "message": "64Mo is not a quantity.",
        },
        {"path": "jobs[0].podSpec.containers[0].imagePullPolicy", "message": "Write it."},
        {"path": "", "message": "There is no queue 'nightly'."},
    ]
    server.on("POST jobs", refusal(400, "invalid", "There are 3 problems.", problems))
    said = tack("submit", str(job_file))
    assert said.code == 1
    assert said.err.splitlines() == [
        f"Error: {job_file}:7: jobs[0].podSpec.containers[0].imagePullPolicy: Write it.",
        f"{job_file}:10: jobs[0].podSpec.containers[0].resources.limits.memory: 64Mo is not a quantity.",
        f"{job_file}: There is no queue 'nightly'.",
    ]


def test_an_unknown_queue_is_told_with_the_line_that_names_it(
    server: SmallServer, tack: Tack, job_file: Path
) -> None:
    problems = [{"path": "queue", "message": "There is no queue 'nightly'. Did you mean night?"}]
    server.on("POST jobs", refusal(404, "not_found", "There is no queue 'nightly'.", problems))
    said = tack("submit", str(job_file))
    assert said.err == f"Error: {job_file}:1: queue: There is no queue 'nightly'. Did you mean night?\n"


def test_an_ambiguous_job_file_is_not_sent(server: SmallServer, tack: Tack, job_file: Path) -> None:
    job_file.write_text(FILE + "queue: other\n")
    said = tack("submit", str(job_file))
    assert (said.code, server.asked) == (1, [])
    assert said.err == f"Error: {job_file}:11: queue: This key is there twice. Keep one of them.\n"


@pytest.mark.parametrize("text", ["", "- a\n", "text\n"])
def test_a_file_that_holds_no_jobs_is_refused(tack: Tack, job_file: Path, text: str) -> None:
    job_file.write_text(text)
    said = tack("submit", str(job_file))
    assert said.code == 1
    assert "There are no jobs here. Begin with queue, jobSetId and jobs." in said.err


@pytest.mark.parametrize("kind", ["Queue", "RetryPolicy"])
def test_a_file_of_another_kind_is_not_submitted_but_told_how_to_make_it(
    tack: Tack, job_file: Path, kind: str
) -> None:
    job_file.write_text(f"apiVersion: armadaproject.io/v1beta1\nkind: {kind}\nname: x\n")
    said = tack("submit", str(job_file))
    told = (
        f"Error: {job_file}:2: kind: This is a {kind}, no job file: make it with tack create -f {job_file}.\n"
    )
    assert (said.code, said.err) == (1, told)


def test_a_job_file_is_not_created_but_told_how_to_submit_it(tack: Tack, job_file: Path) -> None:
    said = tack("create", "-f", str(job_file))
    assert said.code == 1
    assert f"This is a job file: submit it with tack submit {job_file}." in said.err


def test_get_job_tells_the_whole_story(server: SmallServer, tack: Tack) -> None:
    second = run_view(2, undecidedBecause=None, memoryLimitBytes=128 * 1024 * 1024)
    job = job_view(clientId="night-7", annotations={"a/b": "c"}, labels={"team": "render"})
    server.on(f"GET jobs/{JOB_ID}", job | {"spec": {}, "runs": [failed_run(), second]})
    out = tack("get", "job", JOB_ID).out
    assert "128Mi (submitted with 64Mi)" in out
    facts = [" ".join(line.split()) for line in out.splitlines()]
    assert {"Client id night-7", "Annotation a/b=c", "Label team=render"} <= set(facts)
    lines = [line.split() for line in out.splitlines()]
    heading = lines.index(
        ["RUN", "STATE", "NODE", "STARTED", "TOOK", "EXIT", "CATEGORY", "RETRYABLE", "MEMORY", "PEAK"]
    )
    assert lines[heading + 1][:3] == ["1", "failed", "local-1"]
    assert lines[heading + 1][-6:] == ["7s", "137", "oom", "yes", "64Mi", "60Mi"]
    assert lines[heading + 2][-6:] == ["7s", "0", "-", "-", "128Mi", "60Mi"]
    assert f"Run 1: {SENTENCE}" in out
    assert "Last error, of run 1:\nContainer main failed with exit code 137 because OOMKilled\n" in out


def test_get_job_says_why_no_policy_decided(server: SmallServer, tack: Tack) -> None:
    sentence = "No policy was asked: the queue has none and there is no default policy."
    run = failed_run(decision=None, undecidedBecause="no_policy", undecidedSentence=sentence, retryable=False)
    server.on(f"GET jobs/{JOB_ID}", job_view(state="failed") | {"spec": {}, "runs": [run]})
    assert f"Run 1: {sentence}\n" in tack("get", "job", JOB_ID).out


def test_get_job_rounds_memory_as_the_sentences_do(server: SmallServer, tack: Tack) -> None:
    grown = job_view(resources={"cpuMillicores": 0, "memoryRequestBytes": None, "memoryLimitBytes": 96636765})
    runs = [run_view(1, memoryLimitBytes=96636765)]
    server.on(f"GET jobs/{JOB_ID}", grown | {"spec": {}, "runs": runs})
    out = tack("get", "job", JOB_ID).out
    assert "92.2Mi (submitted with 64Mi)" in out
    assert "96636765" not in out


def test_get_job_of_one_that_waits_says_why(server: SmallServer, tack: Tack) -> None:
    waits = job_view(state="queued", waitingBecause="no node has 128Mi free", avoidedNodes=["local-1"])
    server.on(f"GET jobs/{JOB_ID}", waits | {"spec": {}, "runs": []})
    out = tack("get", "job", JOB_ID, "--output").out
    assert "no node has 128Mi free" in out
    assert "local-1" in out
    assert "There is no output: the job has not run." in out


def test_get_job_prints_the_last_output_without_what_steers_a_terminal(
    server: SmallServer, tack: Tack
) -> None:
    server.on(f"GET jobs/{JOB_ID}", job_view() | {"spec": {}, "runs": [failed_run(), run_view(2)]})
    server.on("GET runs/r2/output", Answer(pieces=("one\n[bold]\x1b[2Jtwo",), media="text/plain"))
    assert tack("get", "job", JOB_ID, "--output").out.endswith("Output of run 2:\none\n[bold][2Jtwo\n")


def test_get_job_without_output_says_so(server: SmallServer, tack: Tack) -> None:
    server.on(f"GET jobs/{JOB_ID}", job_view() | {"spec": {}, "runs": [run_view(1)]})
    assert tack("get", "job", JOB_ID, "--output").out.endswith("Run 1 left no output.\n")


def test_get_job_prints_the_output_of_the_run_that_is_asked_for(server: SmallServer, tack: Tack) -> None:
    server.on(f"GET jobs/{JOB_ID}", job_view() | {"spec": {}, "runs": [failed_run(), run_view(2)]})
    server.on("GET runs/r1/output", Answer(pieces=("one",), media="text/plain"))
    assert tack("get", "job", JOB_ID, "--output", "--run", "1").out.endswith("Output of run 1:\none\n")
    refused = tack("get", "job", JOB_ID, "--output", "--run", "3")
    assert (refused.code, "has no run 3. It has runs 1 to 2." in refused.err) == (1, True)
    assert tack("get", "job", JOB_ID, "--run", "1").code == 2


def test_get_job_says_that_output_comes_with_the_end_of_a_run(server: SmallServer, tack: Tack) -> None:
    running = run_view(1, state="running", endedAt=None, exitCode=None)
    server.on(f"GET jobs/{JOB_ID}", job_view(state="running") | {"spec": {}, "runs": [running]})
    told = tack("get", "job", JOB_ID, "--output").out
    assert told.endswith("Run 1 has not ended. Its output comes with its end.\n")


def test_a_lease_that_came_back_hides_neither_the_last_error_nor_the_output(
    server: SmallServer, tack: Tack
) -> None:
    taken = {"message": "The name is taken.", "reason": "", "containers": []}
    returned = run_view(2, state="lease_returned", startedAt=None, exitCode=None, error=taken)
    server.on(f"GET jobs/{JOB_ID}", job_view() | {"spec": {}, "runs": [failed_run(), returned]})
    server.on("GET runs/r1/output", Answer(pieces=("one",), media="text/plain"))
    told = tack("get", "job", JOB_ID, "--output").out
    assert "Last error, of run 1:\nContainer main failed with exit code 137" in told
    assert told.endswith("Output of run 1:\none\n")
    never = tack("get", "job", JOB_ID, "--output", "--run", "2").out
    assert never.endswith("Run 2 has no output: it never started.\n")


def test_markup_in_what_jobs_say_stays_text(server: SmallServer, tack: Tack) -> None:
    run = failed_run(error={"message": "[red]boom[/red]", "reason": "AppError", "containers": []})
    server.on(f"GET jobs/{JOB_ID}", job_view() | {"spec": {}, "runs": [run]})
    assert "[red]boom[/red]" in tack("get", "job", JOB_ID).out


def test_get_job_as_json_is_what_the_api_answers(server: SmallServer, tack: Tack) -> None:
    answer = job_view() | {"spec": {"containers": []}, "runs": [failed_run()]}
    server.on(f"GET jobs/{JOB_ID}", answer)
    assert json.loads(tack("get", "job", JOB_ID, "-o", "json").out) == answer


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0s"), (0, "0s"), (1.98, "2s"), (59.9, "1m"), (192, "3m12s"), (7500, "2h5m"), (3600, "1h"), (3601, "1h"),
     (86_400, "1d"), (97_200, "1d3h")],
)  # fmt: skip
def test_times_are_told_in_their_two_largest_units(seconds: float, words: str) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert span(timedelta(seconds=seconds)) == words
    assert age(now - timedelta(seconds=seconds), now=now) == words


def test_plain_text_keeps_lines_tabs_and_letters() -> None:
    assert plain("größe\t→\n\x1b[31mred\x07\r\u202e") == "größe\t→\n[31mred"
