"""What is said of a name that no filter has: the one that may be meant, or those there are."""

from policies.fields import nearest
from scheduler.filters.conditions import Scope
from scheduler.filters.fields import Grammar

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
