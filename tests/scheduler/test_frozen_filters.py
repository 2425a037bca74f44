"""Addresses that were accepted once, and what they mean for as long as there is /api/v1.

Nothing is changed here: whoever adds to the language adds lines. A line that fails is a bookmark or script that was broken.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from scheduler.filters import (
    Ago,
    Condition,
    Match,
    Scope,
    Value,
    decision_filter_of,
    job_filter_of,
    run_filter_of,
)

IS, BEGINS, HAS, THERE = Match.EQUALS, Match.STARTS_WITH, Match.CONTAINS, Match.EXISTS
MORE, FROM, LESS, TO = Match.GREATER, Match.AT_LEAST, Match.LESS, Match.AT_MOST
OWN, ANY, LAST = Scope.OWN, Scope.ANY, Scope.LAST


def on(
    field: str, match: Match, *values: Value, scope: Scope = OWN, key: str = "", negated: bool = False
) -> Condition:
    return Condition(field=field, key=key, scope=scope, match=match, values=values, negated=negated)


DAY = datetime(2026, 11, 29, tzinfo=UTC)
RUN = "0003a10b-ebc3-4000-8000-0000001d0859"
JOB = "01m8j53gvqm9s346q3d25vt4f5"

JOBS: list[tuple[str, list[Condition]]] = [
    ("", []),
    ("queue=", []),
    ("queue=nightly", [on("queue", IS, "nightly")]),
    ("queue= nightly ", [on("queue", IS, "nightly")]),
    ("queue=a&state=failed&queue=b&queue=a", [on("queue", IS, "a", "b"), on("state", IS, "failed")]),
    ("queue!=a&queue!=b", [on("queue", IS, "a", "b", negated=True)]),
    ("state=FAILED", [on("state", IS, "failed")]),
    ("jobSet^=a%25_&jobSet!^=b", [on("jobSet", BEGINS, "a%_"), on("jobSet", BEGINS, "b", negated=True)]),
    ("owner*=al+ice&owner!*=*", [on("owner", HAS, "al ice"), on("owner", HAS, "*", negated=True)]),
    ("priority>5&priority<=2000", [on("priority", MORE, 5), on("priority", TO, 2000)]),
    ("priority<5&priority>=-3", [on("priority", LESS, 5), on("priority", FROM, -3)]),
    ("cpu=500m&cpu>=2", [on("cpu", IS, 500), on("cpu", FROM, 2_000)]),
    ("memory<=512Mi&memory>2G", [on("memory", TO, 512 << 20), on("memory", MORE, 2 * 10**9)]),
    ("submitted>=2026-11-29&submitted<2026-11-29T01:00:00%2B01:00",
     [on("submitted", FROM, DAY), on("submitted", LESS, DAY)]),
    ("finished>-12h", [on("finished", MORE, Ago(timedelta(hours=12)))]),
    ("finished>=-2w&finished<-90s", [on("finished", FROM, Ago(timedelta(days=14))), on("finished", LESS, Ago(timedelta(seconds=90)))]),
    ("finished?=no&gang?=yes", [on("finished", THERE, negated=True), on("gang", THERE)]),
    (f"id={JOB.upper()}", [on("id", IS, JOB)]),
    ("annotation.example.com/team=render", [on("annotation", IS, "render", key="example.com/team")]),
    ("annotation.a.any?=yes", [on("annotation", THERE, key="a.any")]),
    ("label.x!=y", [on("label", IS, "y", key="x", negated=True)]),
    ("resource.example.com/fpga>=1", [on("resource", FROM, 1, key="example.com/fpga")]),
    ("activeJobSet=true", [on("activeJobSet", IS, True)]),
    ("text=a b", [on("text", IS, "a b")]),
    ("category.any=oom/limit&category.any=none", [on("category", IS, "oom/limit", "none", scope=ANY)]),
    ("node.last!=gpu-07", [on("node", IS, "gpu-07", scope=LAST, negated=True)]),
    ("exitCode.last?=no", [on("exitCode", THERE, scope=LAST, negated=True)]),
    ("coreSeconds.any>0.5&retryable.any=no", [on("coreSeconds", MORE, 0.5, scope=ANY), on("retryable", IS, False, scope=ANY)]),
    ("runState.last=lease_returned&verdict.last=RETRY",
     [on("runState", IS, "lease_returned", scope=LAST), on("verdict", IS, "retry", scope=LAST)]),
    ("finished.any>=-1d&finished<=-1d",
     [on("finished", FROM, Ago(timedelta(days=1)), scope=ANY), on("finished", TO, Ago(timedelta(days=1)))]),
]  # fmt: skip
RUNS: list[tuple[str, list[Condition]]] = [
    (f"id={RUN}&job={JOB}", [on("id", IS, UUID(RUN)), on("job", IS, JOB)]),
    ("state=failed&exitCode>=128", [on("state", IS, "failed"), on("exitCode", FROM, 128)]),
    ("leased>=-1d&error*=No space left", [on("leased", FROM, Ago(timedelta(days=1))), on("error", HAS, "No space left")]),
    ("memoryPeak>1Gi&undecided=no_policy", [on("memoryPeak", MORE, 1 << 30), on("undecided", IS, "no_policy")]),
]  # fmt: skip
DECISIONS: list[tuple[str, list[Condition]]] = [
    (f"run={RUN}&decided>=-1d", [on("run", IS, UUID(RUN)), on("decided", FROM, Ago(timedelta(days=1)))]),
    ("policy^=oom-&policyVersion=2&ruleIndex?=no",
     [on("policy", BEGINS, "oom-"), on("policyVersion", IS, 2), on("ruleIndex", THERE, negated=True)]),
]  # fmt: skip


@pytest.mark.parametrize(("address", "meant"), JOBS)
def test_an_address_of_jobs_means_what_it_meant(address: str, meant: list[Condition]) -> None:
    assert list(job_filter_of(address)) == meant


@pytest.mark.parametrize(("address", "meant"), RUNS)
def test_an_address_of_runs_means_what_it_meant(address: str, meant: list[Condition]) -> None:
    assert list(run_filter_of(address)) == meant


@pytest.mark.parametrize(("address", "meant"), DECISIONS)
def test_an_address_of_decisions_means_what_it_meant(address: str, meant: list[Condition]) -> None:
    assert list(decision_filter_of(address)) == meant


def test_every_match_and_every_scope_is_among_them() -> None:
    said = [condition for _, meant in (*JOBS, *RUNS, *DECISIONS) for condition in meant]
    assert {condition.match for condition in said} == set(Match)
    assert {condition.scope for condition in said} == set(Scope)
    assert {(each.match, each.negated) for each in said} >= {
        (match, negated) for match in (IS, BEGINS, HAS, THERE) for negated in (False, True)
    }
