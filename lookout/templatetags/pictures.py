"""Pictures drawn as SVG by attributes alone: the trail of a job, the rail of its course, phases, meters."""

from collections.abc import Sequence
from datetime import datetime

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from lookout.templatetags.signs import state_class, state_word

register = template.Library()

LEGS_SHOWN = 6
"""A longer trail shows its last legs; its label and the count beside it say how many there were."""
_UP, _DOWN, _STEP = 4, 13, 12
_SQUARE = "M{left} {top}h5v5h-5z"


@register.simple_tag
def trail(states: Sequence[str], job_state: str) -> str:
    """One leg per run with its end marked as its state is; a dotted one where the next run will go."""
    legs = [str(state) for state in states]
    if not legs:
        return SafeString('<span class="dim">–</span>')
    label = _trail_label(legs, job_state)
    if job_state == "queued":
        legs.append("queued")
    first = max(0, len(legs) - LEGS_SHOWN)
    drawn = [_leg(place, first + place, state) for place, state in enumerate(legs[first:])]
    width = 4 + _STEP * len(drawn)
    return format_html(
        '<svg class="trail" width="{}" viewBox="0 0 {} 17" role="img" aria-label="{}">{}</svg>',
        width,
        width,
        label,
        format_html_join("", "{}", ((leg,) for leg in drawn)),
    )


def _trail_label(states: list[str], job_state: str) -> str:
    words = [state_word(state) for state in states]
    if job_state == "queued":
        words.append("queued again")
    return f"{len(states)} run{'s' if len(states) != 1 else ''}: {', '.join(words)}"


def _leg(place: int, number: int, state: str) -> SafeString:
    """A leg goes up for every odd run and down for every even one, wherever the drawn part begins."""
    start, end = (_DOWN, _UP) if number % 2 == 0 else (_UP, _DOWN)
    left, right = 2 + _STEP * place, 2 + _STEP * (place + 1)
    waits = state in ("queued", "leased", "pending")
    return format_html(
        '<g class="{}"><path d="M{} {}L{} {}"/>{}</g>',
        "q" if waits else state_class(state),
        left,
        start,
        right,
        end,
        "" if waits else _end_mark(state, right, end),
    )


def _end_mark(state: str, x: int, y: int) -> SafeString:
    if state == "failed":
        return format_html('<path class="d" d="{}"/>', _SQUARE.format(left=x - 2.5, top=y - 2.5))
    if state == "succeeded":
        return format_html('<circle class="d" cx="{}" cy="{}" r="2.75"/>', x, y)
    if state == "lease_expired":
        return format_html('<path d="{}"/>', _SQUARE.format(left=x - 2.5, top=y - 2.5))
    if state == "preempted":
        return format_html('<path class="d" d="M{} {}h6l-3 5z"/>', x - 3, y - 2)
    return format_html('<circle cx="{}" cy="{}" r="2.25"/>', x, y)


@register.simple_tag
def rail(shape: str, colour: str) -> str:
    """What joins two runs of the course, newest above.

    `left` and `right` turn from the side of the newer run to that of the older one; `stop-left` and
    `stop-right` end the course there; `wait-left` and `wait-right` are turns whose newer run is still to come.
    """
    return format_html(
        '<span class="rail {}"><svg viewBox="0 0 40 100" preserveAspectRatio="none" aria-hidden="true">'
        '<path d="{}"{}/></svg></span>',
        colour,
        _RAILS[shape],
        SafeString(' class="q"') if shape.startswith("wait") else "",
    )


_RAILS = {
    "left": "M7 0L25 110",
    "right": "M25 0L7 110",
    "wait-left": "M7 16L25 110",
    "wait-right": "M25 16L7 110",
    "stop-left": "M7 16V110M0 16H14",
    "stop-right": "M25 16V110M18 16H32",
}


@register.simple_tag
def phase(spans: Sequence[tuple[str, float, float]], label: str) -> str:
    """A bar on the job's own time: spans of (class, start, end), each from 0 to 1."""
    bars = format_html_join(
        "",
        '<rect class="{}" x="{}" width="{}" height="8"/>',
        (
            (kind, f"{1000 * start:.1f}", f"{max(2.5, 1000 * (end - start)):.1f}")
            for kind, start, end in spans
        ),
    )
    return format_html(
        '<svg class="phase" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="b" width="1000" height="8"/>{}</svg>',
        label,
        bars,
    )


@register.simple_tag
def meter(used: float, total: float, label: str = "") -> str:
    """How much of something is taken; its figure stands beside it, so the bar itself is not read out."""
    percent = min(100, round(100 * used / total)) if total else 0
    return format_html(
        '<svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" {}><rect class="b" width="100" height="8"/>'
        '<rect class="v" width="{}" height="8"/></svg>',
        format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"'),
        percent,
    )


def share_of(start: datetime, end: datetime, moment: datetime) -> float:
    """Where a moment lies between two others, from 0 to 1."""
    whole = (end - start).total_seconds()
    part = (moment - start).total_seconds()
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
