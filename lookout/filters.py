"""The filters of an address, of a page or of the API, as the values that reads take.

The language itself stands in `scheduler.filters`; here it is told apart from the other parameters of an address.
"""

from collections.abc import Collection, Iterable
from urllib.parse import urlencode

from django.http import QueryDict

from scheduler.filters import JobFilter, Pair, job_filter_of


def job_filter(query: QueryDict, *, besides: Collection[str] = (), from_form: bool = True) -> JobFilter:
    """The jobs an address means. `besides` names parameters that are not filters, such as `cursor`.

    What was left empty asks nothing where a form may have sent it, and is refused elsewhere. Raises FilterInvalid with
    every problem.
    """
    return job_filter_of(pairs_in(query, besides=besides), from_form=from_form)


def pairs_in(query: QueryDict, *, besides: Collection[str] = ()) -> list[Pair]:
    """The names and values of an address, in its order, without those of `besides`."""
    return [(name, value) for name, values in query.lists() if name not in besides for value in values]


def address_of(values: Iterable[Pair]) -> str:
    """The part of an address after the question mark, with the question mark; empty without values."""
    text = urlencode(list(values))
    return f"?{text}" if text else ""
