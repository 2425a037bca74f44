"""A job reaches nothing of Tack: neither its files, nor its sockets and tokens, nor what its processes know."""

import os
from pathlib import Path

import pytest

from tests.benchmarks.scratch import Scratch
from tests.journeys.stack import Processes, ended

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="as an ordinary user jobs are that user")

LOOKS = """
for each in token agent.token secret database.url broker.url tack.yaml run run/broker.sock postgres broker \
    agent agent/journal agent/bell log log/web.log; do
    if ls "$1/$each" > /dev/null 2>&1 || cat "$1/$each" > /dev/null 2>&1; then echo "reached $each"; fi
done
if ls "$1" > /dev/null 2>&1; then echo "listed var"; fi
for each in /proc/[0-9]*; do
    if tr '\\0' '\\n' 2> /dev/null < "$each/environ" | grep -q '^TACK_VAR='; then echo "read what $each knows"; fi
    if [ "$each" != "/proc/$$" ] && [ -r "$each/fd/3" ]; then echo "reached what $each has open"; fi
done
env | grep TACK | grep -v '^TACK_RUN_ID='
echo looked
"""


def test_a_job_reads_no_file_no_socket_no_token_and_no_process_of_tack(whole_tack: Scratch) -> None:
    assert (whole_tack.var / "token").exists()
    assert (whole_tack.var / "agent" / "bell").exists()
    container = {
        "name": "main",
        "command": ["/bin/sh", "-c", LOOKS, "sh", str(whole_tack.var)],
        "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
    }
    whole_tack.client.create_queue({"name": "curious"})
    job = {"podSpec": {"containers": [container]}}
    (submitted,) = whole_tack.client.submit_jobs({"queue": "curious", "jobSetId": "curious", "jobs": [job]})
    (run,) = ended(whole_tack.client, submitted.job_id).runs
    assert whole_tack.client.run_output(run.run_id) == "looked\n"


def test_no_command_line_which_everybody_can_read_shows_a_secret(whole_tack: Scratch) -> None:
    kept = ("token", "agent.token", "secret", "postgres.password", "broker.url")
    secrets = [(whole_tack.var / name).read_text().split()[-1] for name in kept]
    secrets.append(secrets[-1].partition("://:")[2].partition("@")[0])
    pids = Processes(var=whole_tack.var).of("")
    assert len(pids) > 5
    for pid in pids:
        shown = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        assert not any(secret in shown for secret in secrets), shown
