"""From the names and values of an address to a filter, and back. Every problem is told at once."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from scheduler.filters.conditions import Condition, DecisionFilter, Filter, JobFilter, Match, RunFilter, Scope
from scheduler.filters.fields import DECISIONS, JOBS, RUNS, FilterField, Grammar
from scheduler.filters.kinds import Kind, Value, read_value, written_value
from scheduler.filters.strange import meant_by_strange, said_of_strange, with_one_sign

MOST_CONDITIONS = 40
"""Of one filter."""
MOST_VALUES = 100
"""Of one condition."""
MOST_PROBLEMS = 20
"""More are not told."""
_SHOWN = 60
_SIGNS = re.compile(r"(?P<name>.*?)(?P<negated>!?)(?P<sign>[\^*?<>]?)", re.DOTALL)
_STRICT = re.compile(r"(?P<name>[^<>]*)(?P<sign>[<>])(?P<value>.*)", re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_KEYED = ("annotation", "label", "resource")


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterProblem:
    """One thing an address asks that no filter means."""

    field: str
    message: str


class FilterInvalid(Exception):
    """The address holds a filter that cannot be read. Every problem at once."""

    def __init__(self, problems: Collection[FilterProblem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


type Pair = tuple[str, str]
"""A name and a value, as an address has them."""


def job_filter_of(asked: str | Iterable[Pair], *, from_form: bool = True) -> JobFilter:
    """The jobs meant by an address's text (`queue=nightly&node.last!=gpu-07`) or pairs. Raises FilterInvalid.

    A form sends what was left empty as well, `queue=`, which asks nothing; where none sends it, it is refused.
    """
    return JobFilter(_conditions(JOBS, asked, from_form=from_form))


def job_filter_on(name: str, match: Match, values: Sequence[str]) -> JobFilter:
    """The jobs of which one thing holds, for one or several values just as they are: an empty text is a text.

    Raises FilterInvalid.
    """
    sign = _Sign(match=match, negated=False)
    said = [_Said(given=name, name=name, sign=sign, value=value) for value in values]
    try:
        return JobFilter((_condition(JOBS, said),))
    except _Wrong as error:
        raise FilterInvalid([FilterProblem(field=name[:_SHOWN], message=str(error))]) from error


def run_filter_of(asked: str | Iterable[Pair]) -> RunFilter:
    """The runs meant by an address's text or pairs. Raises FilterInvalid."""
    return RunFilter(_conditions(RUNS, asked))


def decision_filter_of(asked: str | Iterable[Pair]) -> DecisionFilter:
    """The decisions meant by an address's text or pairs. Raises FilterInvalid."""
    return DecisionFilter(_conditions(DECISIONS, asked))


def pairs_of(wanted: Filter) -> list[Pair]:
    """The names and values that are read as this filter."""
    return [pair for condition in wanted for pair in _pairs(_grammar_of(wanted), condition)]


def text_of(wanted: Filter) -> str:
    """The filter as the text of an address; filters that ask the same in another order have the same text."""
    return urlencode(sorted(pairs_of(wanted)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sign:
    """How one parameter compares."""

    match: Match
    negated: bool


_IS = _Sign(match=Match.EQUALS, negated=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Said:
    """One parameter, taken apart."""

    given: str
    """Its name as it was given."""
    name: str
    sign: _Sign
    value: str


class _Wrong(Exception):
    """A problem, said where it is found."""


def _conditions(
    grammar: Grammar, asked: str | Iterable[Pair], *, from_form: bool = True
) -> tuple[Condition, ...]:
    pairs = parse_qsl(asked, keep_blank_values=True) if isinstance(asked, str) else asked
    problems: list[FilterProblem] = []
    found: list[Condition] = []
    for parts in _together(map(_taken_apart, pairs)):
        try:
            if said := _with_values(grammar, parts, from_form=from_form):
                _refuse_two_signs(grammar, said)
                found.append(_condition(grammar, said))
        except _Wrong as error:
            problems.append(FilterProblem(field=parts[0].given[:_SHOWN], message=str(error)))
    if len(found) + len(problems) > MOST_CONDITIONS:
        problems.insert(0, _too_many(len(found) + len(problems)))
    if problems:
        raise FilterInvalid(problems[:MOST_PROBLEMS])
    return tuple(found)


def _too_many(number: int) -> FilterProblem:
    return FilterProblem(
        field="",
        message=f"At most {MOST_CONDITIONS} conditions are read at once, not {number:,}. Ask for fewer.",
    )


def _taken_apart(pair: Pair) -> _Said:
    """`node.last!` and `gpu-07`, `priority>` and `5`, or `priority>5` and nothing."""
    given, value = pair
    if not value and (strict := _STRICT.fullmatch(given)) and strict["value"]:
        match = Match.GREATER if strict["sign"] == ">" else Match.LESS
        sign = _Sign(match=match, negated=False)
        return _Said(given=strict["name"], name=strict["name"], sign=sign, value=strict["value"].strip())
    signs = _SIGNS.fullmatch(given)
    assert signs is not None
    sign = _Sign(match=Match(f"{signs['sign']}="), negated=bool(signs["negated"]))
    return _Said(given=given, name=signs["name"], sign=sign, value=value.strip())


def _with_values(grammar: Grammar, said: list[_Said], *, from_form: bool) -> list[_Said]:
    """Those that ask something. Raises _Wrong: what is misspelt may look as if it had been left empty."""
    if left_empty := [part for part in said if not part.value]:
        part = left_empty[0]
        field, _ = _named(grammar, part.name)
        if not from_form or part.sign != _IS:
            raise _Wrong(f"{part.given[:_SHOWN]} has no value. It takes {field.takes}.")
    return [part for part in said if part.value]


def _refuse_two_signs(grammar: Grammar, said: Iterable[_Said]) -> None:
    """Raises _Wrong for `queue==nightly` and `exitCode=>128`, where no value begins with what looks like a sign."""
    for part in said:
        field, _ = _named(grammar, part.name)
        if meant := with_one_sign(field, _written(part.sign), part.value):
            raise _Wrong(f"{part.name[:_SHOWN]} takes one comparison. Write {part.name}{meant[:_SHOWN]}.")


def _together(said: Iterable[_Said]) -> Iterator[list[_Said]]:
    """The parameters that make one condition: any of their values."""
    groups: dict[tuple[str, _Sign], list[_Said]] = {}
    for part in said:
        groups.setdefault((part.name, part.sign), []).append(part)
    yield from groups.values()


def _condition(grammar: Grammar, said: Sequence[_Said]) -> Condition:
    name, sign = said[0].name, said[0].sign
    field, key = _named(grammar, name)
    if sign.match not in field.matches or (sign.negated and not field.can_be_negated(sign.match)):
        meant = f" Write {name}>={said[0].value[:_SHOWN]}." if field.kind is Kind.TIME and sign == _IS else ""
        raise _Wrong(f"{name[:_SHOWN]} takes {' '.join(field.signs)}, not {_written(sign)}.{meant}")
    texts = list(dict.fromkeys(part.value for part in said))
    most = 1 if field.is_search or sign.match.is_comparison or sign.match is Match.EXISTS else MOST_VALUES
    if len(texts) > most:
        raise _Wrong(f"{name[:_SHOWN]} takes at most {most} value{'s' * (most > 1)}.")
    if sign.match is Match.EXISTS:
        there = bool(_value(name, Kind.FLAG, "yes or no", texts[0], ()))
        return Condition(field=field.name, key=key, scope=field.scope, match=sign.match, negated=not there)
    words = field.words if sign.match is Match.EQUALS else ()
    values = (_value(name, field.kind, field.takes, text, words) for text in texts)
    return Condition(
        field=field.name,
        key=key,
        scope=field.scope,
        match=sign.match,
        values=tuple(dict.fromkeys(values)),
        negated=sign.negated,
    )


def _value(name: str, kind: Kind, takes: str, text: str, words: tuple[str, ...]) -> Value:
    if _UNSTORABLE.search(text):
        raise _Wrong(f"{name[:_SHOWN]} holds a character that no name can hold.")
    try:
        return read_value(kind, text, words)
    except (ValueError, OverflowError) as error:
        takes = takes.removeprefix("one of ")
        meant = meant_by_strange(kind, text, words)
        raise _Wrong(f"{name[:_SHOWN]} takes {takes}; '{text[:_SHOWN]}' is none.{meant}") from error


def _named(grammar: Grammar, name: str) -> tuple[FilterField, str]:
    """The field of a name, and its key. Raises _Wrong."""
    head, _, rest = name.partition(".")
    if rest and head in _KEYED and (keyed := grammar.field(head)):
        if _UNSTORABLE.search(rest):
            raise _Wrong(f"{head} takes a key without characters that no key can hold.")
        return keyed, rest
    scope = Scope(rest) if rest in (Scope.ANY, Scope.LAST) else None
    field = grammar.field(head if scope else name, scope or Scope.OWN)
    if field is None or field.is_keyed:
        raise _Wrong(said_of_strange(grammar, name))
    return field, ""


def _written(sign: _Sign) -> str:
    return f"{'!' * sign.negated}{sign.match}"


_STRICTLY: Collection[Match] = (Match.GREATER, Match.LESS)


def _pairs(grammar: Grammar, condition: Condition) -> Iterator[Pair]:
    if condition.match is Match.EXISTS:
        yield f"{condition.name}?", "no" if condition.negated else "yes"
        return
    field = grammar.field(condition.field, condition.scope)
    assert field is not None
    for value in condition.values:
        text = written_value(field.kind, value)
        if condition.match in _STRICTLY:
            yield f"{condition.name}{condition.match}{text}", ""
        else:
            yield f"{condition.name}{'!' * condition.negated}{condition.match[:-1]}", text


_READERS: dict[type[Filter], tuple[Grammar, Callable[[str], Filter]]] = {
    JobFilter: (JOBS, job_filter_of),
    RunFilter: (RUNS, run_filter_of),
    DecisionFilter: (DECISIONS, decision_filter_of),
}


def _grammar_of(wanted: Filter) -> Grammar:
    return _READERS[type(wanted)][0]
