"""Signs: a state, a category, a verdict or a mark, each as shape, word and colour, in this order of trust."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

_STATE_CLASS = {"lease_returned": "returned", "lease_expired": "expired"}
_STATE_WORD = {"lease_returned": "lease returned", "lease_expired": "lease expired"}
_VERDICT_SIGN = {
    "retry": "retry",
    "fail_rule": "stop",
    "fail_default": "default",
    "fail_policy_limit": "limit",
    "fail_global_limit": "limit",
    "no_error": "stop",
    "retry_unschedulable": "nofit",
}
_VERDICT_CLASS = {"retry": "retry", "limit": "limit", "nofit": "unschedulable"}

INTERNAL_PLACE = 5
"""Tack's own category keeps one place, whatever executors report before it."""
REST_PLACE = 6


@register.simple_tag
def icon(name: str) -> str:
    """A sign beside its word, hidden from screen readers."""
    return format_html('<svg class="i" aria-hidden="true"><use href="#s-{}"/></svg>', name)


@register.filter
def state_class(state: object) -> str:
    """The class that colours a state of a job or a run."""
    return _STATE_CLASS.get(str(state), str(state))


@register.filter
def state_word(state: object) -> str:
    """The word people read for a state."""
    return _STATE_WORD.get(str(state), str(state))


@register.simple_tag
def state(value: object) -> str:
    """A state of a job or a run."""
    return _marked(str(state_class(value)), state_class(value), state_word(value))


@register.simple_tag
def mark(sign: str, word: str, colour: str = "") -> str:
    """Any other sign with its word, such as retryable."""
    return _marked(colour, sign, word)


@register.simple_tag
def retryable(went_on: bool | None) -> str:  # noqa: FBT001  a tag takes its one value by place
    """Whether the job went on after a failure; nothing before that is known."""
    if went_on is None:
        return ""
    return _marked("retry", "retry", "retryable") if went_on else _marked("", "stop", "not retryable")


@register.simple_tag
def verdict(value: object) -> str:
    """A verdict in the word of the API; a dash for none."""
    word = str(value or "")
    if not word:
        return SafeString('<span class="dim">–</span>')
    sign = _VERDICT_SIGN.get(word, "stop")
    colour = _VERDICT_CLASS.get(sign, "")
    return format_html('<span class="{}">{}{}</span>', f"verdict {colour}".strip(), icon(sign), word)


@register.simple_tag(takes_context=True)
def category(context: Mapping[str, Any], name: str | None, subcategory: str | None = "") -> str:
    """A category with the swatch of its place. The empty name is a failure that no category matched."""
    if not name:
        return SafeString('<span class="cat none">none</span>')
    place = place_of(context["category_places"], name)
    rest = format_html("<span>/{}</span>", subcategory) if subcategory else ""
    whole = f"{name}/{subcategory}" if subcategory else name
    return format_html('<span class="cat k{}" title="{}">{}{}</span>', place, whole, name, rest)


def place_of(places: Mapping[str, int], name: str) -> int:
    """The swatch of a category: its place among those the executors report, the sixth for the rest."""
    return INTERNAL_PLACE if name == "internal" else places.get(name, REST_PLACE)


def places_in_order(reported: list[str]) -> dict[str, int]:
    """Places 1 to 4 for the first categories reported; the same categories in the same order keep them."""
    named = [name for name in dict.fromkeys(reported) if name != "internal"]
    return {name: place for place, name in enumerate(named, start=1) if place < INTERNAL_PLACE}


def _marked(colour: str, sign: str, word: str) -> SafeString:
    return format_html('<span class="{}">{}{}</span>', f"st {colour}".strip(), icon(sign), word)
