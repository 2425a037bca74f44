"""The filter language: what an address may ask, and how it is told what it may not."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.filters import (
    JOBS,
    MOST_CONDITIONS,
    Ago,
    Condition,
    FilterInvalid,
    JobFilter,
    Kind,
    Match,
    Scope,
    decision_filter_of,
    job_filter_of,
    pairs_of,
    run_filter_of,
    text_of,
)
from tests.fuzz.hostile_values import texts

JOB = "01m8j53gvqm9s346q3d25vt4f5"


def is_(name: str, *values: object, **more: object) -> Condition:
    """What a condition is, with less to write."""
    field, _, scope = name.partition(".")
    return Condition(field=field, scope=Scope(scope), values=values, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("", []),
        ("queue=", []),
        ("queue=a&queue=b&queue=a&queue=", [is_("queue", "a", "b")]),
        ("queue!=a&queue!=b", [is_("queue", "a", "b", negated=True)]),
        ("state=Failed&state=RUNNING", [is_("state", "failed", "running")]),
        (f"id={JOB.upper()}", [is_("id", JOB)]),
        ("jobSet=a/b%20c,d", [is_("jobSet", "a/b c,d")]),
        ("jobSet^=a&jobSet!*=b", [is_("jobSet", "a", match=Match.STARTS_WITH),
                                  is_("jobSet", "b", match=Match.CONTAINS, negated=True)]),
        ("category.any=oom&category.last=gpu/xid", [is_("category.any", "oom"), is_("category.last", "gpu/xid")]),
        ("node.last!=gpu-07", [is_("node.last", "gpu-07", negated=True)]),
        ("text=%20night%20", [is_("text", "night")]),
        ("priority>5&priority<=9", [is_("priority", 5, match=Match.GREATER), is_("priority", 9, match=Match.AT_MOST)]),
        ("cpu=500m&memory>=2Gi", [is_("cpu", 500), is_("memory", 2 << 30, match=Match.AT_LEAST)]),
        ("submitted>=-12h", [is_("submitted", Ago(timedelta(hours=12)), match=Match.AT_LEAST)]),
        ("submitted<2026-11-29", [is_("submitted", datetime(2026, 11, 29, tzinfo=UTC), match=Match.LESS)]),
        ("finished>2026-11-29T10:00:00+02:00", [is_("finished", datetime(2026, 11, 29, 8, tzinfo=UTC), match=Match.GREATER)]),
        ("exitCode.any?=no", [is_("exitCode.any", match=Match.EXISTS, negated=True)]),
        ("exitCode.last=-1", [is_("exitCode.last", -1)]),
        ("retryable.any=yes&retryable.any=false", [is_("retryable.any", True, False)]),
        ("coreSeconds.last>0.5", [is_("coreSeconds.last", 0.5, match=Match.GREATER)]),
        ("annotation.a.b/c.last=1", [is_("annotation", "1", key="a.b/c.last")]),
        ("resource.a/b>2", [is_("resource", 2, key="a/b", match=Match.GREATER)]),
    ],
)  # fmt: skip
def test_an_address_is_a_filter(asked: str, expected: list[Condition]) -> None:
    assert list(job_filter_of(asked)) == expected


@pytest.mark.parametrize(
    ("asked", "field", "told"),
    [
        ("category.any~oom", "category.any~oom", "There is no filter 'category.any~oom', only"),
        ("nonsense=", "nonsense", "There is no filter 'nonsense'."),
        ("retries>", "retries>", "retries> has no value. It takes a whole number"),
        ("node.last!=", "node.last!", "node.last! has no value."),
        ("colour=red", "colour", "There is no filter 'colour'. The filters of jobs are id, queue,"),
        ("node=x", "node", "node is said of runs: ask for node.any, of some run, or node.last, of the last one."),
        ("node.first=x", "node.first", "There is no filter 'node.first', only node.last and node.any."),
        ("queue.any=x", "queue.any", "There is no filter 'queue.any', only queue."),
        ("annotation=x", "annotation", "annotation takes a key: annotation.KEY."),
        ("state=odd", "state", "state takes queued, leased, pending,"),
        ("id=z1m8j53gvqm9s346q3d25vt4f5", "id", "id takes a job id of 26 letters and digits; 'z1m8"),
        ("priority=high", "priority", "priority takes a whole number such as 137; 'high' is none."),
        ("priority=1_0", "priority", "a whole number"),
        ("priority=١", "priority", "a whole number"),
        ("priority=9223372036854775808", "priority", "a whole number"),
        ("priority^=1", "priority^", "priority takes = > >= < <= !=, not ^="),
                ("cpu=lots", "cpu", "cpu takes cores such as 500m or 2;"),
        ("memory=-", "memory", "memory takes an amount such as 512Mi or 2G;"),
        ("coreSeconds.any=nan", "coreSeconds.any", "coreSeconds.any takes a number such as 3600 or 0.5;"),
        ("coreSeconds.any=1e999", "coreSeconds.any", "takes a number"),
        ("submitted=2026-11-29", "submitted", "submitted takes > >= < <=, not ="),
        ("submitted>=yesterday", "submitted>", "submitted takes a time such as 2026-11-29T10:00:00Z, a day"),
        ("submitted>=0001-01-01", "submitted>", "submitted takes a time"),
        ("submitted>=-999999999w", "submitted>", "submitted takes a time"),
        ("finished?=maybe", "finished?", "finished takes yes or no; 'maybe' is none."),
        ("queue?=yes", "queue?", "queue takes = ^= *= != !^= !*=, not ?="),
        ("retryable.any=perhaps", "retryable.any", "retryable.any takes yes or no;"),
        ("queue==nightly", "queue", "queue takes one comparison. Write queue=nightly."),
        ("queue!==nightly", "queue!", "queue takes one comparison. Write queue!=nightly."),
        ("state==failed", "state", "state takes one comparison. Write state=failed."),
        ("exitCode.any=>128", "exitCode.any", "exitCode.any takes one comparison. Write exitCode.any>=128."),
        ("priority>==5", "priority>", "priority takes one comparison. Write priority>=5."),
        ("state=faild", "state", "'faild' is none. Did you mean failed?"),
        ("killedBy.any=dedline", "killedBy.any",
         "killedBy.any takes memory, deadline, stop, signal; 'dedline' is none. Did you mean deadline?"),
        ("reason.last=oom", "reason.last", "'oom' is none. Did you mean OOM?"),
        ("reason.last!=timeout", "reason.last!", "reason.last takes OOM, Evicted, DeadlineExceeded, AppError; 'timeout'"),
        ("submitted=-12h", "submitted", "submitted takes > >= < <=, not =. Write submitted>=-12h."),
        ("submitted>12h", "submitted", "'12h' is none. Did you mean -12h?"),
        ("priority>=1&priority>=2", "priority>", "priority takes at most 1 value."),
        ("text=a&text=b", "text", "text takes at most 1 value."),
        ("queue=%00", "queue", "queue holds a character that no name can hold."),
        ("annotation.%00=a", "annotation.\x00", "annotation takes a key without"),
        (f"owner={'x' * 1_025}", "owner", "owner takes text of at most 1,024 characters;"),
        ("&".join(f"queue={n}" for n in range(101)), "queue", "queue takes at most 100 values."),
        ("&".join(f"annotation.{n}=1" for n in range(200)), "", f"At most {MOST_CONDITIONS} conditions are read"),
    ],
)  # fmt: skip
def test_nonsense_is_told_with_the_field_and_what_it_takes(asked: str, field: str, told: str) -> None:
    with pytest.raises(FilterInvalid) as caught:
        job_filter_of(asked)
    assert told in caught.value.problems[0].message
    assert caught.value.problems[0].field == field


@pytest.mark.parametrize("asked", ["queue=", "queue=nightly&node.last=", "priority", "queue=a&queue="])
def test_what_is_left_empty_is_refused_where_no_form_sends_it(asked: str) -> None:
    job_filter_of(asked)
    with pytest.raises(FilterInvalid, match="has no value"):
        job_filter_of(asked, from_form=False)


def test_a_time_may_have_any_offset_there_is() -> None:
    (condition,) = job_filter_of("submitted>=2026-11-29T00:00:00-23:59")
    assert condition.values == (datetime(2026, 11, 29, 23, 59, tzinfo=UTC),)
    assert job_filter_of(text_of(JobFilter((condition,)))) == JobFilter((condition,))


def test_runs_and_decisions_are_asked_about_themselves() -> None:
    assert run_filter_of("category=oom&node!=a&state=failed").values("state") == ("failed",)
    assert decision_filter_of("verdict=retry&decided>=-1h&policyVersion=2").values("verdict") == ("retry",)
    with pytest.raises(FilterInvalid, match=r"There is no filter 'node.any', only node"):
        run_filter_of("node.any=a")


def _values(kind: Kind, words: tuple[str, ...]) -> st.SearchStrategy[str]:
    strategies = {
        Kind.TEXT: texts.filter(
            lambda text: text.strip()[:1] not in ("", "=") and text.isprintable() and len(text) < 1_000
        ),
        Kind.WORD: st.sampled_from(words or ("none",)),
        Kind.JOB_ID: st.just(JOB),
        Kind.RUN_ID: st.uuids().map(str),
        Kind.WHOLE: st.integers(-(2**63) + 1, 2**63 - 1).map(str),
        Kind.NUMBER: st.floats(allow_nan=False, allow_infinity=False).map(str),
        Kind.CPU: st.integers(-(2**40), 2**40).map(lambda number: f"{number}m"),
        Kind.BYTES: st.integers(-(2**62), 2**62).map(str),
        Kind.TIME: st.datetimes(datetime(1971, 1, 1), datetime(8_000, 1, 1)).map(datetime.isoformat)  # noqa: DTZ001
        | st.integers(0, 10_000).map(lambda number: f"-{number}h"),
        Kind.FLAG: st.sampled_from(["yes", "no", "TRUE"]),
    }
    return st.sampled_from(words) if words and kind is not Kind.FLAG else strategies[kind]


@pytest.mark.parametrize("asked", ["error.any==x", "annotation.a==b", "jobSet==x", "killedBy.any^=dead"])
def test_text_that_may_begin_with_a_sign_is_taken_as_it_is(asked: str) -> None:
    name, _, value = asked.partition("=")
    (condition,) = job_filter_of([(name, value)])
    assert condition.values == (value,)


@st.composite
def _addresses(draw: st.DrawFn) -> list[tuple[str, str]]:
    pairs = []
    for field in draw(st.lists(st.sampled_from(list(JOBS.fields.values())), max_size=5)):
        match = draw(st.sampled_from(field.matches))
        value = draw(_values(Kind.FLAG if match is Match.EXISTS else field.kind, field.words))
        name = field.shown_name.replace("KEY", "example.com/a")
        negated = "!" * (field.can_be_negated(match) and draw(st.booleans()))
        pairs.append(
            (f"{name}{match}{value}", "") if match in (">", "<") else (f"{name}{negated}{match[:-1]}", value)
        )
    return pairs


@given(pairs=_addresses())
def test_a_filter_is_written_as_it_is_read(pairs: list[tuple[str, str]]) -> None:
    try:
        wanted = job_filter_of(pairs)
    except FilterInvalid as error:
        assert all("at most" in problem.message for problem in error.problems)  # noqa: PT017
        return
    assert job_filter_of(pairs_of(wanted)) == wanted
    assert text_of(job_filter_of(text_of(wanted))) == text_of(wanted)


def test_a_filter_knows_what_it_asks_and_what_it_would_be_without() -> None:
    wanted = job_filter_of("queue=a&state=failed&owner!=b")
    assert (wanted.values("queue"), wanted.values("owner"), wanted.values("priority")) == (("a",), (), ())
    assert wanted.without("queue", "owner") == job_filter_of("state=failed")
    assert job_filter_of("queue=a") & job_filter_of("state=failed&owner!=b") == wanted
    assert not JobFilter()
