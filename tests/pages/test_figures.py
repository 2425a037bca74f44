"""Durations, memory and trails as people read them."""

from datetime import UTC, datetime, timedelta

import pytest

from lookout.pages.difference import difference
from lookout.printouts import LONGEST_LINE, readable
from lookout.templatetags.figures import (
    ago,
    at,
    before_after,
    cores,
    count,
    exact_duration,
    measured,
    plural,
    whole_duration,
)
from lookout.templatetags.pictures import LEGS_SHOWN, share_of, trail
from lookout.templatetags.signs import place_of, places_in_order
from lookout.templatetags.texts import linked, signal_name, yaml_line
from tests.pages.seen import seen

NOW = datetime(2026, 11, 29, 3, 12, 40, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "whole", "exact"),
    [
        (-3, "0 s", "0 s"),
        (0.42, "0 s", "0.42 s"),
        (9.9, "9 s", "9.9 s"),
        (59.4, "59 s", "59 s"),
        (59.9, "59 s", "1 m 00 s"),
        (1877, "31 m", "31 m 17 s"),
        (5498, "1 h 31 m", "1 h 31 m 38 s"),
        (86_400 * 3 + 4 * 3600 + 300, "3 d 4 h", "3 d 4 h 05 m"),
    ],
)
def test_durations(seconds: float, whole: str, exact: str) -> None:
    assert (whole_duration(seconds), exact_duration(seconds)) == (whole, exact)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0"), (786_432, "768Ki"), (1_511_424, "1.4Mi"), (1_024_000, "1000Ki"), (64 << 20, "64Mi")],
)
def test_what_was_measured_has_one_rounding(size: int, words: str) -> None:
    assert measured(size) == words


def test_a_moment_carries_its_exact_time_and_zone() -> None:
    (time,) = seen(ago({"now": NOW}, NOW - timedelta(hours=2, minutes=20))).attributes("time")
    assert time == {"datetime": "2026-11-29T00:52:40.000000Z", "title": "Sun 29 Nov 2026, 00:52:40 UTC"}


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (NOW, "03:12:40"),
        (NOW - timedelta(days=1), "28 Nov, 03:12:40"),
        (NOW - timedelta(days=365), "29 Nov 2025, 03:12:40"),
    ],
)
def test_a_moment_of_another_day_says_which(moment: datetime, words: str) -> None:
    assert seen(at({"now": NOW}, moment)).words == words


def test_amounts() -> None:
    assert (cores(100), cores(2000), cores(7250)) == ("0.1", "2", "7.25")
    assert (count(1284), plural(1, "run,runs"), plural(1284, "run,runs")) == ("1,284", "1 run", "1,284 runs")
    assert seen(before_after("8Gi", "16Gi")).words == "8Gi to 16Gi"
    assert seen(before_after("8Gi", "8Gi")).words == seen(before_after("", "8Gi")).words == "8Gi"
    assert seen(before_after("", "")).words == "–"


@pytest.mark.parametrize(
    ("states", "job_state", "words"),
    [
        (["failed", "failed", "succeeded"], "succeeded", "3 runs: failed, failed, succeeded"),
        (["running"], "running", "1 run: running"),
        (["failed"], "queued", "1 run: failed, queued again"),
        (["lease_returned", "lease_expired"], "failed", "2 runs: lease returned, lease expired"),
        ([], "queued", "–"),
    ],
)
def test_a_trail_is_read_out(states: list[str], job_state: str, words: str) -> None:
    assert seen(trail(states, job_state)).words == words


def test_a_long_trail_draws_its_last_legs() -> None:
    drawn = seen(trail(["failed"] * 40, "failed"))
    assert len(drawn.attributes("g")) == LEGS_SHOWN
    assert drawn.words.startswith("40 runs: failed,")


def test_a_moment_outside_of_the_span_is_drawn_at_its_edge() -> None:
    end = NOW + timedelta(seconds=10)
    assert share_of(NOW, end, NOW + timedelta(seconds=5)) == 0.5
    assert share_of(NOW, end, NOW - timedelta(seconds=5)) == 0
    assert share_of(NOW, end, end + timedelta(seconds=5)) == 1
    assert share_of(NOW, NOW, NOW) == 0


def test_places_follow_the_order_of_report_and_internal_has_its_own() -> None:
    places = places_in_order(["oom", "internal", "gpu", "oom", "a", "b", "c"])
    assert [place_of(places, name) for name in ("oom", "gpu", "a", "b", "c", "internal", "other")] == [
        1,
        2,
        3,
        4,
        6,
        5,
        6,
    ]


@pytest.mark.parametrize(
    ("kept", "dropped", "words"),
    [
        (b"", 0, ""),
        (b"one\ntwo\n", 0, "one two"),
        (b"10%\r50%\r100%\rdone\r\n", 0, "done"),
        (b"\x1b]0;title\x07\x1b[1;31mred\x1b[0m \x1b(B\x1bPq\x1b\\x", 0, "red x"),
        (b"bell\x07 tab\tnul\x00 \xff", 0, "bell␇ tab nul␀ �"),
        ("rtl \u202e zero\u200bwidth".encode(), 0, "rtl \\u202e zero\\u200bwidth"),
        ("žluťoučký kůň 🐎 日本".encode(), 0, "žluťoučký kůň 🐎 日本"),
    ],
)
def test_output_is_made_safe_to_read(kept: bytes, dropped: int, words: str) -> None:
    printout = readable(kept, b"", dropped)
    assert " ".join(" ".join(line.text for line in printout.lines).split()) == words


def test_bytes_that_are_no_text_are_dumped() -> None:
    printout = readable(bytes(range(256)) * 8, b"", 0)
    assert printout.note == "Not text: the first bytes of 2,048"
    assert printout.lines[4].text.startswith("40 41 42 43")
    assert printout.lines[4].text.endswith("@ABCDEFGHIJKLMNO")


def test_lines_after_a_gap_have_no_numbers() -> None:
    printout = readable(b"head\n", b"tail\n", 1_000_000)
    assert [(line.number, line.text) for line in printout.lines] == [("", "tail")]
    assert "1,000,000 bytes" in printout.note


def test_an_endless_line_is_cut() -> None:
    (line,) = readable(b"x" * 60_000, b"", 0).lines
    assert len(line.text) < LONGEST_LINE + 40
    assert line.text.endswith("… (60,000 characters)")


@pytest.mark.parametrize(
    ("line", "html"),
    [
        ("  - action: Retry", '  - <span class="key">action</span>: Retry'),
        ("name: a: b", '<span class="key">name</span>: a: b'),
        ("# why: this", "# why: this"),
        ("<b>: x", '<span class="key">&lt;b&gt;</span>: x'),
        ("", " "),
    ],
)
def test_a_line_of_a_document_has_its_key_marked(line: str, html: str) -> None:
    assert yaml_line(line) == html


def test_a_sentence_leads_to_its_policy_once() -> None:
    assert linked("Rule 1 of a<b matched a<b", "a<b", 3) == (
        'Rule 1 of <a href="/policies/a%3Cb?version=3">a&lt;b</a> matched a&lt;b'
    )
    assert linked("No & policy", "other", 3) == "No &amp; policy"


def test_signals_have_names() -> None:
    assert (signal_name(9), signal_name(200)) == ("SIGKILL", "signal 200")


def test_a_difference_keeps_every_line_of_both() -> None:
    lines = difference("a\nb\nc", "a\nx\nc\nd")
    assert [(line.sign, line.text) for line in lines] == [
        (" ", "a"), ("−", "b"), ("+", "x"), (" ", "c"), ("+", "d"),
    ]  # fmt: skip
    assert [line.number for line in lines if line.sign != "−"] == [1, 2, 3, 4]
