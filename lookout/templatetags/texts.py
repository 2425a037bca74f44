"""Texts of others made fit to show: documents line by line, errors, names of signals."""

import re
import signal
from dataclasses import dataclass

from django import template
from django.urls import reverse
from django.utils.html import escape, format_html

from lookout.printouts import plain

register = template.Library()

_KEY = re.compile(r"^(\s*(?:- )*)([^\s:#'\"{\[][^:#]*?)(:)(?=\s|$)(.*)$", re.DOTALL)
_LINES_AT_ONCE = 6
_KILLERS = {
    "memory": "the memory limit",
    "deadline": "the deadline",
    "stop": "a stop that was asked for",
    "signal": "a signal",
}


@register.simple_tag
def yaml_line(line: str) -> str:
    """A line of a YAML document with its key in accent."""
    found = _KEY.match(line)
    if found is None:
        return format_html("{}", plain(line) or " ")
    indent, key, colon, rest = (plain(part) for part in found.groups())
    return format_html('{}<span class="key">{}</span>{}{}', indent, key, colon, rest)


@register.simple_tag
def linked(sentence: str, policy: str, version: int) -> str:
    """A sentence in which the first mention of a policy leads to the version that decided, deleted or not."""
    before, name, after = sentence.partition(policy)
    if not name or not policy:
        return escape(sentence)
    address = f"{reverse('policy', args=[policy])}?version={version}"
    return format_html('{}<a href="{}">{}</a>{}', before, address, name, after)


@register.filter
def readable(text: str) -> str:
    """An error as text: escape sequences taken out, invisible characters shown."""
    return plain(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """A text of many lines: those that are shown at once, and those that are unfolded."""

    first: str
    rest: str
    count: int
    """Lines of the rest."""


@register.filter
def folded(text: str) -> Folded:
    """The first lines of a long text apart from the rest. Two lines more than that are not worth folding."""
    lines = text.splitlines()
    shown = _LINES_AT_ONCE if len(lines) > _LINES_AT_ONCE + 2 else len(lines)
    return Folded(first="\n".join(lines[:shown]), rest="\n".join(lines[shown:]), count=len(lines) - shown)


@register.filter
def signal_name(number: int) -> str:
    """`SIGKILL`, or the number of a signal that has no name here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@register.filter
def killer(word: str) -> str:
    """What ended a run that did not end by itself."""
    return _KILLERS.get(word, word)
