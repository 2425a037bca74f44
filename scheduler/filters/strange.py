"""What is said of a name that no filter has and of a value that is none: what may be meant, or what there is."""

from collections.abc import Collection

from policies.fields import nearest, suggestion
from scheduler.filters.conditions import Scope
from scheduler.filters.fields import FilterField, Grammar
from scheduler.filters.kinds import Kind, meant_age

_SHOWN = 60
_IDS = {
    ("jobs", "jobid"): "id", ("runs", "jobid"): "job", ("decisions", "jobid"): "job", ("runs", "runid"): "id",
    ("decisions", "runid"): "run",
}  # fmt: skip
_IN_ANSWERS = {"runcount": "runs", "endedat": "finished", "memorypeakbytes": "memoryPeak"}
"""Fields of answers whose filters have names far from theirs."""


def said_of_strange(grammar: Grammar, name: str) -> str:
    """A sentence about a name of which the grammar has no field, with what to write instead."""
    head = name.partition(".")[0]
    if not name:
        return "The comparison has no field before it. Write one, such as queue."
    if (keyed := grammar.field(name)) and keyed.is_keyed:
        return f"{name} takes a key: {keyed.shown_name}."
    if grammar.field(name, Scope.ANY):
        return f"{name} is said of runs: ask for {name}.any, of some run, or {name}.last, of the last one."
    if head != name and (grammar.field(head) or grammar.field(head, Scope.ANY)):
        return f"There is no filter '{name[:_SHOWN]}', only {_spelled(grammar, head, ' and ')}."
    return f"There is no filter '{name[:_SHOWN]}'. {_meant(grammar, name, head) or _known(grammar)}"


def with_one_sign(field: FilterField, sign: str, value: str) -> str:
    """Comparison and value that may be meant by a value that begins with a sign, `=nightly` after `=`.

    Empty where it does not, and for text that may begin so.
    """
    signs = "=" if field.is_name else "" if field.kind is Kind.TEXT else "=<>"
    rest = value.lstrip(signs) if value[0] in signs else ""
    meant = value[0] if sign == "=" and value[0] in "<>" else sign.removesuffix("=")
    return f"{meant}={rest}" if rest else ""


def meant_by_strange(kind: Kind, text: str, words: Collection[str]) -> str:
    """The question what may be meant by a text that is no value, after a blank; empty where nothing is near."""
    near = meant_age(text) if kind is Kind.TIME else ""
    return f" Did you mean {near}?" if near else suggestion(text, words)


def _meant(grammar: Grammar, name: str, head: str) -> str:
    fields = grammar.fields.values()
    key = name.casefold()
    answered = _IDS.get((grammar.things, key)) or _IN_ANSWERS.get(key, "")
    near = answered if grammar.field(answered) else ""
    near = near or nearest(name, [field.asked_as for field in fields if not field.is_keyed])
    if not near and (bare := nearest(head, [field.name for field in fields])):
        near = _spelled(grammar, bare, " or ")
    return f"Did you mean {near}?" if near else ""


def _known(grammar: Grammar) -> str:
    fields = grammar.fields.values()
    own = ", ".join(field.shown_name for field in fields if field.scope is Scope.OWN)
    of_runs = ", ".join(dict.fromkeys(field.name for field in fields if field.scope is not Scope.OWN))
    rest = f"; of runs, each with .any or .last after it, {of_runs}" if of_runs else ""
    return f"The filters of {grammar.things} are {own}{rest}."


def _spelled(grammar: Grammar, head: str, between: str) -> str:
    return between.join(field.shown_name for field in grammar.fields.values() if field.name == head)
