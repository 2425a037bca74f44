"""How answers look: YAML and JSON for programs, tables for people, ages and sizes in short.

Text that came out of jobs is stripped of terminal control characters before it reaches a terminal.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import yaml
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from policies.quantity import rounded_bytes
from policies.tree import plain_scalar

STATE_STYLES = {
    "queued": "cyan",
    "leased": "cyan",
    "pending": "cyan",
    "running": "blue",
    "cancelling": "yellow",
    "succeeded": "green",
    "failed": "red",
    "rejected": "red",
    "cancelled": "dim",
    "preempted": "yellow",
    "lease_returned": "yellow",
    "lease_expired": "yellow",
}
NONE = "-"
_WIDE_ENOUGH = 10_000
_GAP = 2
"""Between two columns."""
_COMMON_NAME = 16


class _Dumper(yaml.SafeDumper):
    """Quotes every text that our own reader would take for a number or a boolean."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What steers a terminal or turns the order of what follows around."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None if isinstance(plain_scalar(text), str) else "'"
    if _STEERING.search(text):
        style = '"'  # the one form that can hold it as a code
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def print_yaml(value: Any) -> None:
    """As YAML, keys in alphabetical order."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=100)
    click.echo(_in_codes(text), nl=False)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """As JSON, indented unless told otherwise."""
    click.echo(_in_codes(json.dumps(value, indent=indent, ensure_ascii=False)))


def print_json_line(text: str) -> None:
    """Part of lines of JSON, as it came."""
    click.echo(_in_codes(text), nl=False)


def _in_codes(text: str) -> str:
    """JSON, or YAML of the dumper above, without characters that steer a terminal: only in quotes can there be any."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_as(form: str, value: Any) -> None:
    """As `json` or `yaml`."""
    (print_json if form == "json" else print_yaml)(value)


def without_zeros(value: Any) -> Any:
    """The value without what says nothing: null, false, 0, empty text, lists and objects. 2.0 becomes 2."""
    if isinstance(value, Mapping):
        kept = {key: without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, False, 0, "", [], {})}
    if isinstance(value, list | tuple):
        return [without_zeros(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def console() -> Console:
    """Where tables go. Not on a terminal, lines are as long as they need to be, so that programs can split them."""
    return Console(width=None if sys.stdout.isatty() else _WIDE_ENOUGH, highlight=False, soft_wrap=False)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    whole: Sequence[str] = (),
    widths: Mapping[str, int] | None = None,
    one_line: bool = False,
) -> Table:
    """A table without lines. Columns named in `whole` are never broken; others are where they must be, or are cut
    where each row is to be `one_line`. `widths` are those of `fitting`.
    """
    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for heading in headings:
        made.add_column(
            heading,
            no_wrap=one_line or heading in whole,
            overflow="ellipsis" if one_line else "fold",
            width=(widths or {}).get(heading),
            min_width=len(heading),
        )
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    return made


def fitting(
    columns: Mapping[str, Sequence[str | Text]],
    *,
    whole: Sequence[str],
    gives_way: Sequence[str],
    width: int,
) -> dict[str, int]:
    """The columns that there is room for in `width`, each with its own: of those that give way the first go first.

    Columns that are not `whole` may be narrower than their cells, but not than a name of common length.
    """
    wanted = {
        name: max(len(name), *(cell_len(str(cell)) for cell in cells)) for name, cells in columns.items()
    }
    found = {
        name: wide if name in whole else min(wide, max(len(name), _COMMON_NAME))
        for name, wide in wanted.items()
    }
    for spared in gives_way:
        if _room(found, width) < 0:
            del found[spared]
    for name in found:
        found[name] += min(max(_room(found, width), 0), wanted[name] - found[name])
    return found


def _room(widths: Mapping[str, int], width: int) -> int:
    """What is left of `width`; less than nothing where it is too little."""
    return width - sum(widths.values()) - _GAP * (len(widths) - 1)


def state_text(state: str) -> Text:
    """A state in its colour; the word says it all without."""
    return Text(state, style=STATE_STYLES.get(state, ""))


_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def plain(text: str) -> str:
    """The text without characters that steer a terminal; line ends and tabs stay."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _UNSEEN)


def say(text: str, *, err: bool = False) -> None:
    """A sentence for people, which may name what somebody else made up."""
    click.echo(plain(text), err=err)


def one_line(text: str) -> str:
    """The text without characters that steer a terminal, its ends of lines written out."""
    return plain(text.replace("\n", "\\n"))


def size(amount: int | None) -> str:
    """Bytes for reading, in the words of the sentences beside them: 64Mi, 92.2Mi."""
    return NONE if amount is None else rounded_bytes(amount)


def age(moment: datetime | None, *, now: datetime | None = None) -> str:
    """How long ago, in its two largest units: 3m12s, 2h5m, 4d3h."""
    return NONE if moment is None else span((now or datetime.now(UTC)) - moment)


def span(length: timedelta) -> str:
    """A length of time in its two largest units, to the nearest second. Clocks that disagree give 0s, not less."""
    seconds = max(round(length.total_seconds()), 0)
    units = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for name, unit in units:
        amount, seconds = divmod(seconds, unit)
        if amount or parts or name == "s":
            parts.append(f"{amount}{name}")
    return "".join(part for part in parts[:2] if not part.startswith("0") or len(parts) == 1)
