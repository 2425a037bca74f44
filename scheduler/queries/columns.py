"""Where the fields of the filter language stand in the tables, and what one condition says about a column."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any

from django.db.models import BigIntegerField, Exists, F, FloatField, Func, OuterRef, Q, TextField, Value
from django.db.models.expressions import Combinable, Expression
from django.db.models.functions import Cast, Coalesce, Greatest, Now
from django.db.models.lookups import In

from scheduler.filters import Ago, Condition, Kind, Match
from scheduler.models import Job
from scheduler.queries.failures import NO_CATEGORY
from scheduler.queries.search import with_text
from scheduler.states import FAILED_RUN_STATES

_LOOKUPS = {
    Match.STARTS_WITH: "startswith", Match.CONTAINS: "contains", Match.GREATER: "gt", Match.AT_LEAST: "gte",
    Match.LESS: "lt", Match.AT_MOST: "lte",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A place with values: a path from the row, or an expression that is never null."""

    path: str = ""
    expression: Callable[[str], Expression] | None = None
    """Made for the key of the condition."""
    says: Callable[[Condition], Q] | None = None
    """What a condition means here, where it is more than a comparison."""
    kind: Kind = Kind.TEXT

    def holds(self, condition: Condition) -> Q:
        """Rows of which the condition, taken without its negation, is true."""
        if self.says:
            return self.says(condition)
        if condition.match is Match.EXISTS:
            return self._is_there()
        if condition.match is Match.EQUALS:
            return self._compared("in", condition, list(condition.values))
        found = Q()
        for value in condition.values:
            found |= self._compared(_LOOKUPS[condition.match], condition, _operand(value))
        return found

    def _is_there(self) -> Q:
        text = self.kind in (Kind.TEXT, Kind.WORD)
        return Q(**{f"{self.path}__gt": ""}) if text else Q(**{f"{self.path}__isnull": False})

    def _compared(self, lookup: str, condition: Condition, operand: Any) -> Q:
        if self.expression is None:
            return Q(**{f"{self.path}__{lookup}": operand})
        expression = self.expression(condition.key)
        compare = expression.output_field.get_lookup(lookup)
        assert compare is not None
        return Q(compare(expression, operand))


def _operand(value: object) -> Any:
    if isinstance(value, Ago):
        return Now() - value.length
    # As a plain number beyond what the column can hold, Django would take it for a condition that is always true
    # and find rows without a value.
    return Value(value, BigIntegerField()) if type(value) is int else value


def _text(path: str) -> Column:
    return Column(path=path)


def _other(path: str) -> Column:
    """A column that is null where there is no value."""
    return Column(path=path, kind=Kind.WHOLE)


def _json_text(column: str, key: str) -> Func:
    """The text under a key, whatever the key looks like; null where there is none."""
    return Func(F(column), Value(key), function="jsonb_extract_path_text", output_field=TextField())


def _in_json(column: str) -> Column:
    def says(condition: Condition) -> Q:
        has_key = Q(**{f"{column}__has_key": condition.key})
        if condition.match is Match.EXISTS:
            return has_key
        text = Coalesce(_json_text(column, condition.key), Value(""), output_field=TextField())
        if condition.match is Match.EQUALS:
            return has_key & Q(In(text, [str(value) for value in condition.values]))
        compare = TextField().get_lookup(_LOOKUPS[condition.match])
        assert compare is not None
        return has_key & reduce(or_, (Q(compare(text, value)) for value in condition.values))

    return Column(says=says)


def _resource(name: str) -> Expression:
    amount = Cast(_json_text("resources", name), FloatField())
    return Coalesce(amount, Value(0.0), output_field=FloatField())


def _reserved(name: str = "") -> Column:
    return Column(expression=lambda key: _resource(name or key))


def reserved_memory(_: str = "") -> Expression:
    """What is reserved of memory: the limit, or else the request, or nothing."""
    size = BigIntegerField()
    return Coalesce("memory_limit_bytes", "memory_request_bytes", Value(0), output_field=size)


def _retries(_: str) -> Expression:
    after_the_first: Combinable = F("run_count") - 1
    return Greatest(after_the_first, Value(0), output_field=BigIntegerField())


def _searched(condition: Condition) -> Q:
    return with_text(str(condition.values[0]))


def _active(condition: Condition) -> Q:
    """Asked for yes and no, every job is meant."""
    unended = Job.objects.filter(job_set=OuterRef("job_set"), ended_at__isnull=True)
    is_active = Q(Exists(unended))
    if len(condition.values) > 1:
        return Q(pk__isnull=False)
    return is_active if condition.values[0] else ~is_active


def _last_category(condition: Condition) -> Q:
    """Of a job: the column is null where there was no failure."""
    return _category_in("last_", condition, uncategorised=Q(last_category=""))


def _category(prefix: str, condition: Condition) -> Q:
    """Of a run: only some ends are failures."""
    failed = Q(**{f"{prefix}category": "", f"{prefix}state__in": FAILED_RUN_STATES})
    return _category_in(prefix, condition, uncategorised=failed)


def _category_in(prefix: str, condition: Condition, *, uncategorised: Q) -> Q:
    """`oom`, `oom/limit` with the subcategory, or `none` for a failure without any."""
    column = _text(f"{prefix}category")
    if condition.match is not Match.EQUALS:
        return column.holds(condition)
    found = column.holds(condition)
    for text in map(str, condition.values):
        category, slash, subcategory = text.partition("/")
        if slash:
            found |= Q(**{f"{prefix}category": category, f"{prefix}subcategory": subcategory})
        elif text == NO_CATEGORY:
            found |= uncategorised
    return found


OF_JOBS: Mapping[str, Column] = {
    "id": _other("id"),
    "queue": _text("queue__name"),
    "jobSet": _text("job_set__name"),
    "state": _text("state"),
    "owner": _text("owner"),
    "namespace": _text("namespace"),
    "clientId": _text("client_id"),
    "priority": _other("priority"),
    "priorityClass": _text("priority_class"),
    "gang": _text("gang_id"),
    "cpu": _other("cpu_request_millicores"),
    "memory": Column(expression=reserved_memory),
    "ephemeralStorage": _reserved("ephemeral-storage"),
    "gpu": _reserved("nvidia.com/gpu"),
    "resource": _reserved(),
    "submitted": _other("submitted_at"),
    "stateChanged": _other("state_changed_at"),
    "finished": _other("ended_at"),
    "runs": _other("run_count"),
    "retries": Column(expression=_retries),
    "annotation": _in_json("annotations"),
    "label": _in_json("labels"),
    "cancelUser": _text("cancel_user"),
    "cancelReason": _text("cancel_reason"),
    "rejectedBecause": _text("rejected_because"),
    "activeJobSet": Column(says=_active),
    "text": Column(says=_searched),
}

OF_LAST_RUNS: Mapping[str, Column] = {
    "executor": _text("last_executor"),
    "node": _text("last_node"),
    "pool": _text("last_pool"),
    "category": Column(says=_last_category),
    "subcategory": _text("last_subcategory"),
}
"""What jobs know of where they ran last, and of what they failed of last."""


def _of_runs(run: str, job: str) -> dict[str, Column]:
    """Columns by the paths to a run and to its job."""
    return {
        "job": _other(f"{job}id"),
        "queue": _text(f"{job}queue__name"),
        "jobSet": _text(f"{job}job_set__name"),
        "owner": _text(f"{job}owner"),
        "namespace": _text(f"{job}namespace"),
        "number": _other(f"{run}number"),
        "executor": _text(f"{run}executor__name"),
        "node": _text(f"{run}node"),
        "pool": _text(f"{run}pool"),
        "leased": _other(f"{run}leased_at"),
        "started": _other(f"{run}started_at"),
        "finished": _other(f"{run}ended_at"),
        "exitCode": _other(f"{run}exit_code"),
        "signal": _other(f"{run}signal"),
        "coreSeconds": _other(f"{run}core_seconds"),
        "memoryPeak": _other(f"{run}memory_peak_bytes"),
        "killedBy": _text(f"{run}killed_by"),
        "retryable": _other(f"{run}retryable"),
        "undecided": _text(f"{run}undecided_because"),
        "category": Column(says=partial(_category, run)),
        "subcategory": _text(f"{run}subcategory"),
        "error": _text(f"{run}error__message"),
        "reason": _text(f"{run}error__reason"),
        "fingerprint": _text(f"{run}fingerprint"),
    }


def _of_decisions(decision: str) -> dict[str, Column]:
    """Columns by the path to a decision."""
    return {
        "verdict": _text(f"{decision}verdict"),
        "policy": _text(f"{decision}policy_name"),
        "policyVersion": _other(f"{decision}policy_version"),
        "ruleIndex": _other(f"{decision}rule_index"),
        "decided": _other(f"{decision}decided_at"),
    }


OF_RUNS: Mapping[str, Column] = {
    **_of_runs("", "job__"),
    **_of_decisions("decision__"),
    "id": _other("id"),
    "queue": _text("queue__name"),
    "state": _text("state"),
    "runState": _text("state"),
}
OF_DECISIONS: Mapping[str, Column] = {
    **_of_runs("run__", "job__"),
    **_of_decisions(""),
    "run": _other("run__id"),
}
