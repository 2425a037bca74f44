"""What a program may send to the REST API: one clear error with its path, soon, and nothing is stored."""

import base64
import json
import uuid
from copy import deepcopy
from typing import Any

import pytest
from django.db import connection

from scheduler.actors import Role
from scheduler.jobfile import MAX_JOB_SET_BYTES
from scheduler.models import Job, JobSet, Queue, RetryPolicy
from tests.api.caller import Caller, caller
from tests.factories import OOM_GROW, POD_SPEC, make_job, make_queue
from tests.hostile.soon import soon

pytestmark = pytest.mark.django_db

RTL = "a\u202eb"
WIDE = "".join(map(chr, range(0x20000, 0x20000 + 1_024 * 37, 37)))
"""A thousand characters of four bytes each that no database can press together."""


@pytest.fixture
def olga() -> Caller:
    make_queue("nightly")
    return caller("olga", Role.OPERATOR)


def stored() -> tuple[int, ...]:
    return Job.objects.count(), JobSet.objects.count(), Queue.objects.count(), RetryPolicy.objects.count()


def job_file(**fields: Any) -> dict[str, Any]:
    return {"queue": "nightly", "jobSetId": "set", "jobs": [job()], **fields}


def job(**fields: Any) -> dict[str, Any]:
    return {"podSpec": deepcopy(POD_SPEC), **fields}


def with_amount(kind: str, name: str, amount: Any) -> dict[str, Any]:
    spec = deepcopy(POD_SPEC)
    spec["containers"][0]["resources"][kind][name] = amount
    return job_file(jobs=[{"podSpec": spec}])


def with_cpu(cores: str) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cores}}}]
    return job_file(jobs=[{"podSpec": {"containers": containers}}])


MEMORY = "jobs[0].podSpec.containers[0].resources.limits.memory"
JOB_FILES: list[tuple[Any, str]] = [
    (None, "queue"),
    ([], ""),
    ("queue", ""),
    (job_file(queue=7), "queue"),
    (job_file(jobSetId="a\nb"), "jobSetId"),
    (job_file(jobSetId=RTL), "jobSetId"),
    (job_file(jobSetId="\x1b[2J"), "jobSetId"),
    (job_file(jobSetId="s" * 1_025), "jobSetId"),
    (job_file(jobSetId=WIDE), "jobSetId"),
    (job_file(jobs={}), "jobs"),
    (job_file(jobs=[]), "jobs"),
    (job_file(jobs=[job()] * 10_001), "jobs"),
    (job_file(jobs=[job(priority=2**31)]), "jobs[0].priority"),
    (job_file(jobs=[job(priority=-1)]), "jobs[0].priority"),
    (job_file(jobs=[job(priority=0.5)]), "jobs[0].priority"),
    (job_file(jobs=[job(priority=10**400)]), "jobs[0].priority"),
    (job_file(jobs=[job(namespace="n" * 64)]), "jobs[0].namespace"),
    (job_file(jobs=[job(namespace="../etc")]), "jobs[0].namespace"),
    (job_file(jobs=[job(clientId="c" * 101)]), "jobs[0].clientId"),
    (job_file(jobs=[job(labels={"a": "l" * 64})]), "jobs[0].labels.a"),
    (job_file(jobs=[job(labels={"": "x"})]), 'jobs[0].labels[""]'),
    (job_file(jobs=[job(annotations={"a": "x" * 65_537})]), "jobs[0].annotations.a"),
    (job_file(jobs=[job(annotations={f"k{n}": "x" * 30_000 for n in range(3)})]), "jobs[0].annotations"),
    (job_file(jobs=[job(annotations={"a\nb": "x"})]), 'jobs[0].annotations["a\nb"]'),
    (job_file(jobs=[job(annotations={f"k{n}": "" for n in range(257)})]), "jobs[0].annotations"),
    (job_file(jobs=[job(), {**job(), "x" * 100_000: 1}]), "jobs[1]." + "x" * 63),
    (with_amount("limits", "memory", "9" * 200), MEMORY),
    (with_amount("limits", "memory", "-1"), MEMORY),
    (with_amount("limits", "memory", "1e"), MEMORY),
    (with_amount("limits", "memory", "٣Gi"), MEMORY),
    (with_amount("limits", "memory", " 1Gi"), MEMORY),
    (with_amount("limits", "memory", True), MEMORY),
    (with_amount("limits", "memory", [1]), MEMORY),
    (with_cpu("9223372036854775807"), "jobs[0].podSpec.containers"),
    (with_amount("limits", "a\nb", "1"), 'jobs[0].podSpec.containers[0].resources.limits["a\nb"]'),
    (
        job_file(jobs=[{"podSpec": {"containers": [{"name": "c", "args": ["x" * 70_000]}]}}]),
        "jobs[0].podSpec",
    ),
    (
        job_file(jobs=[{"podSpec": {"containers": [{"name": f"c{n}"} for n in range(51)]}}]),
        "jobs[0].podSpec.containers",
    ),
    (
        job_file(jobs=[{"podSpec": {**POD_SPEC, "terminationGracePeriodSeconds": 2**31}}]),
        "jobs[0].podSpec.terminationGracePeriodSeconds",
    ),
]
QUEUES: list[tuple[Any, str]] = [
    ({"name": "q" * 64}, "name"),
    ({"name": RTL}, "name"),
    ({"name": ["q"]}, "name"),
    ({"name": "q", "priorityFactor": 0}, "priorityFactor"),
    ({"name": "q", "priorityFactor": 1e300}, "priorityFactor"),
    ({"name": "q", "priorityFactor": 10**400}, "priorityFactor"),
    ({"name": "q", "priorityFactor": "1"}, "priorityFactor"),
    ({"name": "q", "userOwners": ["a"] * 1_001}, "userOwners"),
    ({"name": "q", "userOwners": [RTL]}, "userOwners[0]"),
    ({"name": "q", "groupOwners": ["g" * 254]}, "groupOwners[0]"),
    ({"name": "q", "labels": {"a": ""}}, "labels.a"),
    ({"name": "q", "labels": []}, "labels"),
    ({"name": "q", "retryPolicies": ["none"] * 101}, "retryPolicies"),
    ({"name": "q", "retryPolicies": ["none"]}, "retryPolicies"),
    ({"name": "q", "permissions": [{"subjects": [], "verbs": ["submit"]}]}, "permissions[0].subjects"),
    (
        {"name": "q", "permissions": [{"subjects": [{"kind": "User", "name": "a\nb"}], "verbs": ["own"]}]},
        "permissions[0].subjects[0].name",
    ),
]
MEMORY_OF_RULE = "rules[0].mutate.resources.memory"
POLICIES: list[tuple[Any, str]] = [
    ({**OOM_GROW, "name": "p" * 64}, "name"),
    ({**OOM_GROW, "name": RTL}, "name"),
    ({**OOM_GROW, "retryLimit": 2**32}, "retryLimit"),
    ({**OOM_GROW, "retryLimit": -1}, "retryLimit"),
    ({**OOM_GROW, "retryLimit": 10**400}, "retryLimit"),
    ({**OOM_GROW, "defaultAction": "f" * 10_000}, "defaultAction"),
    ({**OOM_GROW, "rules": {}}, "rules"),
    ({**OOM_GROW, "rules": [[]]}, "rules[0]"),
    ({**OOM_GROW, "kind": "k" * 10_000}, "kind"),
    ({**OOM_GROW, "x" * 10_000: 1}, "x" * 60 + "…"),
    *(
        ({**OOM_GROW, "rules": [{"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": bump}}}]}, path)
        for bump, path in [
            ({"factor": 1}, MEMORY_OF_RULE),
            ({"factor": 1e300}, MEMORY_OF_RULE),
            ({"factor": 10**400}, MEMORY_OF_RULE),
            ({"factor": "2"}, f"{MEMORY_OF_RULE}.factor"),
            ({"static": "-1Gi"}, MEMORY_OF_RULE),
            ({"static": "9" * 200}, MEMORY_OF_RULE),
            ({"static": 5}, f"{MEMORY_OF_RULE}.static"),
        ]
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "path"), JOB_FILES, ids=[path for _, path in JOB_FILES])
def test_a_job_file_that_makes_no_sense(olga: Caller, body: Any, path: str) -> None:
    refused_by(olga, "v1/jobs", body, path)


@pytest.mark.parametrize(("body", "path"), QUEUES, ids=[path for _, path in QUEUES])
def test_a_queue_that_makes_no_sense(olga: Caller, body: Any, path: str) -> None:
    refused_by(olga, "v1/queues", body, path)


@pytest.mark.parametrize(("body", "path"), POLICIES, ids=[path for _, path in POLICIES])
def test_a_policy_that_makes_no_sense(olga: Caller, body: Any, path: str) -> None:
    refused_by(olga, "v1/retry-policies", body, path)


def refused_by(olga: Caller, door: str, body: Any, path: str) -> None:
    before, sent = stored(), json.dumps(body)
    with soon():
        refused = olga.post(door, sent)
    assert (refused.status, refused.paths[:1]) == (400, [path])
    assert len(json.dumps(refused.body)) < 100_000
    assert stored() == before


@pytest.mark.parametrize(
    "door", ["jobs", "queues", "retry-policies", "retry-policies/check", "jobs/cancel", "jobs/preempt"]
)
@pytest.mark.parametrize(
    "body",
    [
        "[" + "[]," * 5_000_000 + "[]]",
        '{"jobs": [' + "0," * 7_000_000 + "0]}",
        "{" + ",".join(f'"k{n}":0' for n in range(900_000)) + "}",
        "[" * 8_000_000,
        '{"a":' * 2_000_000,
        '{"queue": "' + "x" * 15_000_000 + '"}',
        '{"queue": "' + "\\u0000" * 2_000_000 + '"}',
        '"' + "\\\\" * 5_000_000,
        " " * 15_000_000,
        "9" * 10_000_000,
        "1e" + "9" * 1_000_000,
        b"\x1f\x8b\x08" + b"\x00" * 1_000,
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\x00}\x00",
    ],
    ids=range(14),
)
def test_a_body_that_costs_more_than_it_says(olga: Caller, door: str, body: str | bytes) -> None:
    with soon():
        refused = olga.post(f"v1/{door}", body)
    checked = door == "retry-policies/check" and refused.status == 200 and refused.body["problems"]
    assert checked or refused.status in (400, 413)
    assert stored()[0] == 0


YAML_BODIES = [
    "a: &a [x, x]\nb: [*a, *a]",
    "a: !!python/name:os.system x",
    "<<: {name: q}",
    "name: q\nname: r",
    "name: q\n---\nname: r",
    "name: q\nretryLimit: 0x" + "f" * 100_000,
    "name: q\nretryLimit: " + "9" * 100_000,
    "name: .nan",
    "name: 2026-01-01 00:00:00",
    '{"name": "\\ud800"}',
    '"\\0": 1',
    "? [a]\n: b",
    "a: " + "[" * 50_000,
    "{a: " * 60_000,
    "- " * 100_000,
    "[" + "[]," * 80_000 + "]",
    "\n".join(f"k{n}: 1" for n in range(20_000)),
    "a: '" + "x" * 200_000,
    "#" * 300_000,
    "\t@\x07",
    "%YAML 9.9\n---\nname: q",
    "name: |9999999\n x",
]


@pytest.mark.parametrize("door", ["jobs", "queues", "retry-policies"])
@pytest.mark.parametrize("text", YAML_BODIES, ids=range(len(YAML_BODIES)))
def test_yaml_that_two_readers_could_read_differently(olga: Caller, door: str, text: str) -> None:
    before = stored()
    with soon():
        refused = olga.call("POST", f"v1/{door}", body=text, content_type="application/yaml")
    assert refused.status == 400
    assert refused.error["problems"]
    assert stored() == before


def cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


ULID = "01jf8z9q9v0000000000000000"
CURSORS = [
    "x", "=", "%00", "%ff", "a" * 100_000, cursor("2026"), cursor(f"2026-01-01T00:00:00 {ULID}"),
    cursor(f"0001-01-01T00:00:00+23:59 {ULID}"), cursor(f"9999-12-31T23:59:59-23:59 {ULID}"),
    cursor("2026-01-01T00:00:00+00:00 "), cursor("2026-01-01T00:00:00+00:00 \x00"),
    cursor(f"2026-01-01T00:00:00+00:00 {ULID} OR 1=1"),
]  # fmt: skip


@pytest.mark.parametrize("sent", [*CURSORS, cursor(f"2026-01-01T00:00:00+00:00 {uuid.UUID(int=7)}")])
def test_a_cursor_that_is_none_of_ours(olga: Caller, sent: str) -> None:
    refused = olga.get("v1/jobs", {"cursor": sent.replace("%00", "\x00")})
    assert (refused.status, refused.paths) == (400, ["cursor"])


@pytest.mark.parametrize("sent", [*CURSORS, cursor(f"2026-01-01T00:00:00+00:00 {ULID}")])
def test_a_cursor_of_jobs_is_none_of_decisions(olga: Caller, sent: str) -> None:
    refused = olga.get("v1/decisions", {"cursor": sent.replace("%00", "\x00")})
    assert (refused.status, refused.paths) == (400, ["cursor"])


def test_the_cursor_of_another_filter_is_refused(olga: Caller) -> None:
    for _ in range(3):
        make_job("nightly")
    first = olga.get("v1/jobs", {"limit": 1})
    refused = olga.get("v1/jobs", {"limit": 5, "cursor": first.body["next"], "state": "failed"})
    assert (refused.status, refused.paths) == (400, ["cursor"])
    assert len(olga.get("v1/jobs", {"limit": 5, "cursor": first.body["next"]}).body["jobs"]) == 2


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=1001", "limit"),
        ("limit=" + "9" * 30, "limit"),
        ("limit=" + "9" * 5_000, "limit"),
        ("limit=1e1", "limit"),
        ("limit=%D9%A1", "limit"),
        ("limit=1&limit=2", "limit"),
        ("state=none", "state"),
        ("id=x", "id"),
        ("id=%E2%84%AA" + ULID[1:], "id"),
        ("queue=%00", "queue"),
        ("&".join(f"queue=q{n}" for n in range(101)), "queue"),
        ("&".join(f"queue=q{n}" for n in range(2_000)), ""),
        ("colour=red", "colour"),
        ("text=a&text=b", "text"),
    ],
)
def test_a_filter_that_makes_no_sense(olga: Caller, query: str, path: str) -> None:
    with soon():
        refused = olga.get(f"v1/jobs?{query}")
    assert (refused.status, refused.paths) == (400, [path])


HEADERS = [
    {"Authorization": "Bearer " + "x" * 100_000},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer one, Bearer two"},
    {"Authorization": "Basic eDp4"},
    {"Authorization": "Bearer \xff\xfe"},
    {"Authorization": "\t"},
    {"Authorization": "bearer\x0b\x0cx"},
]


@pytest.mark.parametrize("headers", HEADERS, ids=range(len(HEADERS)))
def test_a_token_that_is_none_is_refused_whatever_else_came_along(headers: dict[str, str]) -> None:
    refused = Caller().get("v1/queues", headers=headers)
    assert (refused.status, refused.error["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        ({"If-Match": "x" * 10_000}, "If-Match"),
        ({"If-Match": '"1", "2"'}, "If-Match"),
        ({"If-Match": '"' + "9" * 5_000 + '"'}, "If-Match"),
    ],
)
def test_an_if_match_that_makes_no_sense(olga: Caller, headers: dict[str, str], path: str) -> None:
    olga.post("v1/retry-policies", OOM_GROW)
    refused = olga.put("v1/retry-policies/oom-grow", {**OOM_GROW, "retryLimit": 9}, headers=headers)
    assert (refused.status, refused.paths) == (400, [path])


@pytest.mark.parametrize("number", ["x", "-1", "9" * 5_000, "1.5", "\u0661"])
def test_a_last_event_that_makes_no_sense(olga: Caller, number: str) -> None:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": number.encode().decode("latin-1")}
    refused = olga.get("v1/events?queue=nightly&jobSet=set", headers=headers)
    assert (refused.status, refused.paths) == (400, ["Last-Event-ID"])


def test_jobs_that_cannot_be_cancelled_are_told_by_their_place(olga: Caller) -> None:
    for ids in (["x" * 60_000], ["'; DROP TABLE scheduler_job; --"], [ULID.replace("0", "\u0660")]):
        assert olga.post("v1/jobs/cancel", {"jobIds": ids}).paths == ["jobIds[0]"]
    assert olga.post("v1/jobs/cancel", {"jobIds": [ULID] * 10_001}).paths == ["jobIds"]
    assert olga.post("v1/jobs/cancel", {"jobIds": [], "reason": "r" * 2_001}).paths == ["reason"]


def test_no_name_is_too_long_for_the_indexes_that_hold_it(olga: Caller) -> None:
    longest = WIDE[: MAX_JOB_SET_BYTES // 4]
    jobs = [job(clientId=WIDE[:100], namespace="n" * 63, labels={WIDE[:317]: WIDE[:63]})]
    assert olga.post("v1/queues", {"name": "q" * 63}).status == 201
    assert olga.post("v1/jobs", job_file(queue="q" * 63, jobSetId=longest, jobs=jobs)).status == 200
    assert olga.get("v1/events", {"queue": "q" * 63, "jobSet": longest}).body["last"] == 2


def test_columns_under_an_index_are_short_or_hashed() -> None:
    """What is indexed and free text would end in an error of the database once somebody writes enough of it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT c.relname || '.' || a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)"
            " WHERE c.relname LIKE ANY(ARRAY['scheduler_%%', 'lookout_%%']) AND a.atttypid = 'text'::regtype"
        )
        assert sorted(cursor.fetchall()) == [
            ("scheduler_change.subject",),  # names of queues and policies: at most 63
            ("scheduler_job.owner",),  # names of people: at most 150
        ]
