"""Figures people read: moments, durations, memory, counts, and a value before and after."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from policies.quantity import measured_bytes, rounded_bytes

register = template.Library()

NONE = SafeString('<span class="dim">–</span>')
"""What a cell says when there is nothing to say."""
_DAY = 86_400
_HOUR = 3_600


def whole_duration(seconds: float) -> str:
    """For lists: `41 s`, `9 m`, `2 h 20 m`, `3 d 4 h`."""
    seconds = max(0, int(seconds))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // 60} m"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // 60:02d} m"
    return f"{seconds // _DAY} d {seconds % _DAY // _HOUR} h"


def exact_duration(seconds: float) -> str:
    """For one job: `0.42 s`, `41 s`, `31 m 17 s`, `1 h 31 m 38 s`, `3 d 4 h 05 m`."""
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.2f}".rstrip("0").rstrip(".") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // 60:02d} m {whole % 60:02d} s"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h {whole % _HOUR // 60:02d} m"


@register.filter
def duration(value: timedelta | float | None) -> str:
    """A duration in whole steps, to the nearest second; a dash for none."""
    return NONE if value is None else whole_duration(round(_seconds(value)))


@register.filter
def exactly(value: timedelta | float | None) -> str:
    """A duration with its seconds; a dash for none."""
    return NONE if value is None else exact_duration(_seconds(value))


@register.simple_tag(takes_context=True)
def ago(context: dict[str, Any], moment: datetime | None) -> str:
    """`2 h 20 m ago`, by the page's clock, with the exact time behind it."""
    return _time(moment, f"{whole_duration(_age(context, moment))} ago") if moment else NONE


@register.simple_tag(takes_context=True)
def since(context: dict[str, Any], moment: datetime | None) -> str:
    """`2 h 20 m`, by the page's clock, with the exact time behind it."""
    return _time(moment, whole_duration(_age(context, moment))) if moment else NONE


@register.filter
def clock(moment: datetime | None) -> str:
    """`22:41:07`, UTC, with the date behind it."""
    return _time(moment, f"{moment:%H:%M:%S}") if moment else NONE


@register.simple_tag(takes_context=True)
def at(context: dict[str, Any], moment: datetime | None) -> str:
    """`22:41:07` today, `28 Nov, 22:41:07` on other days, UTC."""
    if moment is None:
        return NONE
    now: datetime = context["now"]
    if moment.date() == now.date():
        return clock(moment)
    day = f"{moment.day} {moment:%b}" if moment.year == now.year else f"{moment.day} {moment:%b %Y}"
    return _time(moment, f"{day}, {moment:%H:%M:%S}")


@register.filter
def quantity(size: int | None) -> str:
    """Bytes for reading: `64Mi`, `17.6Gi`."""
    return NONE if size is None else rounded_bytes(size)


@register.filter
def measured(size: int | None) -> str:
    """Bytes that were measured: one decimal of the largest unit, so that they compare."""
    return NONE if size is None else measured_bytes(size)


@register.filter
def cores(millicores: int | None) -> str:
    """CPU in cores: `0.1`, `2`, `7.25`."""
    return NONE if millicores is None else f"{millicores / 1000:.3f}".rstrip("0").rstrip(".")


@register.filter
def count(number: int | None) -> str:
    """`1,284`; a zero is there, but dim."""
    if number is None:
        return NONE
    return f"{number:,}" if number else SafeString('<span class="dim">0</span>')


@register.filter
def plural(number: int, words: str) -> str:
    """The number and its word: `{{ 2|plural:"run,runs" }}` is `2 runs`."""
    one, many = words.split(",")
    return f"{number:,} {one if number == 1 else many}"


@register.filter
def total(numbers: Iterable[int]) -> int:
    """Their sum."""
    return sum(numbers)


@register.simple_tag
def before_after(before: object, after: object) -> str:
    """The old value in label ink and the new one in strong ink; one value when nothing changed."""
    if before in (None, "") or before == after:
        return NONE if after in (None, "") else format_html('<span class="ba">{}</span>', after)
    return format_html(
        '<span class="ba"><del>{}</del><svg class="i" role="img" aria-label="to"><use href="#s-arrow"/></svg>'
        "<ins>{}</ins></span>",
        before,
        after,
    )


def _seconds(value: timedelta | float) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _age(context: dict[str, Any], moment: datetime) -> float:
    now: datetime = context["now"]
    return (now - moment).total_seconds()


def _time(moment: datetime, words: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}",
        f"{moment:%a} {moment.day} {moment:%b %Y, %H:%M:%S} UTC",
        words,
    )
