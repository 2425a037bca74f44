"""The columns of the list of jobs: what they are called, which are shown, and the order each leads to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lookout.pages.bar import jobs_address
from scheduler.filters import FilterInvalid, FilterProblem, JobFilter, Order, Pair, SortKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column. The wider the page, the more of them there is room for."""

    name: str
    """In the address."""
    label: str
    classes: str = ""
    first: str = ""
    """The order that the first click on its head leads to; empty for none."""
    is_fixed: bool = False
    """Always shown."""
    gives_way: bool = False
    """Not there on a laptop's screen, unless somebody chose it."""
    is_extra: bool = False
    """Only there when somebody chose it."""


COLUMNS = (
    Column(name="state", label="State", first="state", is_fixed=True),
    Column(name="job", label="Job", first="id", is_fixed=True),
    Column(name="queue", label="Queue", classes="p2", first="queue"),
    Column(name="jobSet", label="Job set", classes="p2", first="jobSet"),
    Column(name="clientId", label="Client id", classes="p2", is_extra=True),
    Column(name="owner", label="Owner", classes="p2", first="owner", is_extra=True),
    Column(name="namespace", label="Namespace", classes="p2", first="namespace", is_extra=True),
    Column(name="priority", label="Priority", classes="p2 n", first="priority", is_extra=True),
    Column(name="runs", label="Runs", classes="p2", first="-runs"),
    Column(name="failure", label="Last failure", classes="p2"),
    Column(name="verdict", label="Verdict", classes="p2"),
    Column(name="retries", label="Retries", classes="p3 n"),
    Column(name="memory", label="Memory", classes="p3", first="-memory"),
    Column(name="node", label="Node", classes="p3"),
    Column(name="exit", label="Exit", classes="p3 n"),
    Column(name="ran", label="Ran", classes="n", gives_way=True),
    Column(name="submitted", label="Submitted", classes="n", first="-submitted", is_fixed=True),
    Column(name="inState", label="In state", classes="n", first="-stateChanged", gives_way=True),
)
CHOICES = tuple(column for column in COLUMNS if not column.is_fixed)
_FIXED = frozenset(column.name for column in COLUMNS if column.is_fixed)
NONE = "none"
"""In the address: only the columns that are always shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """The head of a column."""

    label: str
    classes: str
    address: str
    """The list in the order of this column, the other way when it is in that order already; empty for none."""
    way: str
    """ascending, descending, or empty: how the list is ordered by this column."""


_CALLED = {
    "submitted": ("oldest first", "newest first"),
    "stateChanged": ("longest in their state first", "last changed first"),
}


def least(chosen: Sequence[str]) -> str:
    """The class of columns that give way: first of all, or, where columns were chosen, with others of a wide page."""
    return "p3" if any(text.strip() for text in chosen) else "p4"


def usual_columns(wanted: JobFilter) -> frozenset[str]:
    """The columns of a list for which none were chosen; that of the queue only where there may be several."""
    of_one_queue = len(wanted.values("queue")) == 1
    return frozenset(
        column.name
        for column in COLUMNS
        if not column.is_extra and not (of_one_queue and column.name == "queue")
    )


def columns_of(chosen: Sequence[str], usual: frozenset[str]) -> frozenset[str]:
    """The columns that are shown: those chosen, with commas between or one by one; the usual without a choice.

    Raises FilterInvalid.
    """
    names = [name.strip() for text in chosen for name in text.split(",") if name.strip()]
    known = [column.name for column in CHOICES]
    strange = next((name for name in names if name not in (*known, NONE)), None)
    if strange is not None:
        message = f"columns takes {', '.join(known)} or {NONE}; '{strange[:60]}' is none."
        raise FilterInvalid([FilterProblem(field="columns", message=message)])
    return frozenset(names) - {NONE} | _FIXED if names else usual


def chosen_as(shown: frozenset[str], usual: frozenset[str]) -> str:
    """The choice of these columns as an address has it; empty where they are the usual ones."""
    if shown == usual:
        return ""
    return ",".join(column.name for column in CHOICES if column.name in shown) or NONE


def headings(
    order: Order, shown: frozenset[str], filters: Sequence[Pair], look: Mapping[str, str], *, least: str
) -> list[Heading]:
    """The heads of the columns that are shown, for a list with these filters in this order."""
    return [
        Heading(
            label=column.label,
            classes=f"{least} {column.classes}" if column.gives_way else column.classes,
            address=jobs_address(filters, **{**look, "sort": _next(order, column.first)})
            if column.first
            else "",
            way=_way(order[0], column.first.removeprefix("-")),
        )
        for column in COLUMNS
        if column.name in shown
    ]


def order_in_words(order: Order) -> str:
    """How the list is ordered: newest first, by queue, by runs from the most."""
    key = order[0]
    if key.name in _CALLED:
        return _CALLED[key.name][key.descending]
    return ", ".join(f"by {key.name}{', descending' if key.descending else ''}" for key in order)


def _way(key: SortKey, name: str) -> str:
    if key.name != name:
        return ""
    return "descending" if key.descending else "ascending"


def _next(order: Order, first: str) -> str:
    key = SortKey(name=first.removeprefix("-"), descending=first.startswith("-"))
    return str(SortKey(name=key.name, descending=not key.descending) if key == order[0] else key)
