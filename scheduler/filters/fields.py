"""The names of the filter language: what can be asked about jobs, runs and decisions, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from policies.decision import Verdict
from scheduler.executors.protocol import KilledBy
from scheduler.filters.conditions import Match, Scope
from scheduler.filters.kinds import TAKES, Kind
from scheduler.states import JobState, RunState, UndecidedBecause

_ORDER = (Match.GREATER, Match.AT_LEAST, Match.LESS, Match.AT_MOST)
_PARTS = (Match.STARTS_WITH, Match.CONTAINS)


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterField:
    """One name, what it means, and what it takes."""

    name: str
    kind: Kind
    label: str
    """On pages: "Queue is nightly"."""
    told: str
    """What it is, for the reference."""
    words: tuple[str, ...] = ()
    """The values there are, of a word; of text, those it can be as a whole."""
    can_be_empty: bool = False
    """There may be no value, so `?=` asks something."""
    is_keyed: bool = False
    """The name goes on with a key: annotation.example.com/team."""
    is_search: bool = False
    """Takes one value, by `=` alone."""
    is_name: bool = False
    """Its values are names, and none begins with a sign of comparison."""
    scope: Scope = Scope.OWN
    of_failure: bool = False
    """Said of failures: the last run of a job means its last run that failed."""

    @property
    def matches(self) -> tuple[Match, ...]:
        """The comparisons it takes."""
        if self.is_search:
            return (Match.EQUALS,)
        equals = () if self.kind is Kind.TIME else (Match.EQUALS,)
        parts = _PARTS if self.kind is Kind.TEXT else ()
        order = _ORDER if self.kind.is_ordered else ()
        return (*equals, *parts, *order, *((Match.EXISTS,) if self.can_be_empty else ()))

    def can_be_negated(self, match: Match) -> bool:
        """The opposite of a comparison has a sign of its own; that of yes is no."""
        return not (match.is_comparison or match is Match.EXISTS or self.is_search)

    @property
    def signs(self) -> tuple[str, ...]:
        """Every comparison as it stands in an address, with its negation."""
        negated = (f"!{match}" for match in self.matches if self.can_be_negated(match))
        return (*map(str, self.matches), *negated)

    @property
    def takes(self) -> str:
        """The values it takes, in words."""
        return f"one of {', '.join(self.words)}" if self.words else TAKES[self.kind]

    @property
    def asked_as(self) -> str:
        """Name and scope."""
        return f"{self.name}.{self.scope}" if self.scope else self.name

    @property
    def shown_name(self) -> str:
        """As it stands in an address, with KEY for the key."""
        return ".".join(part for part in (self.name, "KEY" if self.is_keyed else "", self.scope) if part)


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """The fields of one sort of things, by name and scope."""

    things: str
    """Jobs, runs or decisions."""
    fields: Mapping[tuple[str, Scope], FilterField]

    def field(self, name: str, scope: Scope = Scope.OWN) -> FilterField | None:
        """The field of that name, or None."""
        return self.fields.get((name, scope))


_NAMES = (
    "queue", "namespace", "priorityClass", "executor", "node", "pool", "category", "subcategory", "fingerprint",
    "policy", "killedBy", "reason",
)  # fmt: skip


def _field(name: str, kind: Kind, label: str, told: str, **more: object) -> FilterField:
    is_name = name in _NAMES
    return FilterField(name=name, kind=kind, label=label, told=told, is_name=is_name, **more)  # type: ignore[arg-type]


_OF_JOBS = (
    _field("id", Kind.JOB_ID, "Job", "the job's id"),
    _field("queue", Kind.TEXT, "Queue", "the name of its queue"),
    _field("jobSet", Kind.TEXT, "Job set", "the id of its job set"),
    _field("state", Kind.WORD, "State", "where it stands", words=tuple(JobState)),
    _field("owner", Kind.TEXT, "Owner", "who submitted it"),
    _field("namespace", Kind.TEXT, "Namespace", "its namespace"),
    _field("clientId", Kind.TEXT, "Client id", "what the submitter calls it", can_be_empty=True),
    _field("priority", Kind.WHOLE, "Priority", "its priority; smaller goes first"),
    _field("priorityClass", Kind.TEXT, "Priority class", "its priority class", can_be_empty=True),
    _field("gang", Kind.TEXT, "Gang", "the id of its gang", can_be_empty=True),
    _field("cpu", Kind.CPU, "CPU", "reserved cores"),
    _field("memory", Kind.BYTES, "Memory", "reserved memory, grown by retries: the limit, or else the request"),
    _field("ephemeralStorage", Kind.BYTES, "Ephemeral storage", "reserved ephemeral storage"),
    _field("gpu", Kind.WHOLE, "GPUs", "reserved nvidia.com/gpu"),
    _field("resource", Kind.WHOLE, "Resource", "any other reserved resource, in whole units", is_keyed=True),
    _field("submitted", Kind.TIME, "Submitted", "when it was submitted"),
    _field("stateChanged", Kind.TIME, "State changed", "when it came to its state"),
    _field("finished", Kind.TIME, "Finished", "when it ended", can_be_empty=True),
    _field("runs", Kind.WHOLE, "Runs", "how many runs it has had"),
    _field("retries", Kind.WHOLE, "Retries", "how many runs it has had after the first"),
    _field("annotation", Kind.TEXT, "Annotation", "an annotation", is_keyed=True, can_be_empty=True),
    _field("label", Kind.TEXT, "Label", "a label", is_keyed=True, can_be_empty=True),
    _field("cancelUser", Kind.TEXT, "Cancelled by", "who cancelled it", can_be_empty=True),
    _field("cancelReason", Kind.TEXT, "Cancel reason", "why it was cancelled", can_be_empty=True),
    _field("rejectedBecause", Kind.TEXT, "Rejected because", "why it can never run", can_be_empty=True),
    _field("activeJobSet", Kind.FLAG, "Active job set", "whether its job set has a job that has not ended"),
    _field("text", Kind.TEXT, "Job set or owner",
           "in the name of the job set or the owner, in any letter case; or the name of the queue, the job's id, "
           "or 10 or more characters it begins with", is_search=True),
)  # fmt: skip
_OF_RUNS = (
    _field("runState", Kind.WORD, "Run's state", "where the run stands", words=tuple(RunState)),
    _field("number", Kind.WHOLE, "Run", "which try of the job it is; 1 is the first"),
    _field("executor", Kind.TEXT, "Executor", "the executor"),
    _field("node", Kind.TEXT, "Node", "the node"),
    _field("pool", Kind.TEXT, "Pool", "the pool"),
    _field("leased", Kind.TIME, "Leased", "when it was leased"),
    _field("started", Kind.TIME, "Started", "when it started running", can_be_empty=True),
    _field("finished", Kind.TIME, "Run finished", "when the run ended", can_be_empty=True),
    _field("exitCode", Kind.WHOLE, "Exit code", "the exit code", can_be_empty=True),
    _field("signal", Kind.WHOLE, "Signal", "the signal that ended it", can_be_empty=True),
    _field("coreSeconds", Kind.NUMBER, "Core-seconds", "reserved cores times seconds of running"),
    _field("memoryPeak", Kind.BYTES, "Memory peak", "the most memory it used", can_be_empty=True),
    _field("killedBy", Kind.TEXT, "Killed by", "memory, deadline, stop or signal", can_be_empty=True,
           words=tuple(cause for cause in KilledBy if cause)),
    _field("retryable", Kind.FLAG, "Retryable", "whether the job went on after the failure", can_be_empty=True),
    _field("undecided", Kind.WORD, "Undecided because", "why no policy decided about its end",
           words=tuple(UndecidedBecause), can_be_empty=True),
)  # fmt: skip
_OF_FAILURES = (
    _field("category", Kind.TEXT, "Failure",
           "what it failed of: `oom`, or `oom/limit` with the subcategory; `none` is a failure without a category",
           can_be_empty=True, of_failure=True),
    _field("subcategory", Kind.TEXT, "Subcategory", "the subcategory of the failure", can_be_empty=True,
           of_failure=True),
    _field("error", Kind.TEXT, "Error", "the text of the error", can_be_empty=True, of_failure=True),
    _field("reason", Kind.TEXT, "Reason", "OOM, Evicted, DeadlineExceeded or AppError", can_be_empty=True,
           words=("OOM", "Evicted", "DeadlineExceeded", "AppError"), of_failure=True),
    _field("fingerprint", Kind.TEXT, "Fingerprint", "what equal errors have in common", can_be_empty=True,
           of_failure=True),
    _field("verdict", Kind.WORD, "Verdict", "what was decided about it", words=tuple(Verdict), can_be_empty=True,
           of_failure=True),
    _field("policy", Kind.TEXT, "Policy", "the retry policy that decided", can_be_empty=True, of_failure=True),
    _field("policyVersion", Kind.WHOLE, "Policy version", "its version", can_be_empty=True, of_failure=True),
    _field("ruleIndex", Kind.WHOLE, "Rule", "the rule that matched, counted from 0", can_be_empty=True,
           of_failure=True),
)  # fmt: skip
_RUN_ID = _field("id", Kind.RUN_ID, "Run", "the run's id")
_JOB_OF_RUN = (
    _field("job", Kind.JOB_ID, "Job", "the id of its job"),
    *(field for field in _OF_JOBS if field.name in ("queue", "jobSet", "owner", "namespace")),
)
_DECIDED = _field("decided", Kind.TIME, "Decided", "when it was decided")
_DECISIONS_HAVE = ("executor", "node", "pool", "category", "subcategory", "fingerprint", "exitCode")
_ALWAYS_DECIDED = ("verdict", "policy", "policyVersion")


def _in_scope(field: FilterField, scope: Scope) -> FilterField:
    labels = {
        Scope.ANY: f"Any {in_a_sentence(field.label)}",
        Scope.LAST: f"Last {in_a_sentence(field.label)}",
    }
    return replace(field, scope=scope, label=labels[scope])


def in_a_sentence(label: str) -> str:
    """A label in the middle of other words."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def _grammar(things: str, *fields: FilterField) -> Grammar:
    return Grammar(
        things=things, fields=MappingProxyType({(field.name, field.scope): field for field in fields})
    )


def _renamed(field: FilterField) -> FilterField:
    """Among runs, a run's state is its state."""
    return replace(field, name="state", label="State") if field.name == "runState" else field


JOBS = _grammar(
    "jobs",
    *_OF_JOBS,
    *(_in_scope(field, scope) for field in (*_OF_FAILURES, *_OF_RUNS) for scope in (Scope.LAST, Scope.ANY)),
)
RUNS = _grammar("runs", _RUN_ID, *_JOB_OF_RUN, *map(_renamed, _OF_RUNS), *_OF_FAILURES)
DECISIONS = _grammar(
    "decisions",
    replace(_RUN_ID, name="run", told="the id of the run it is about"),
    *_JOB_OF_RUN,
    _DECIDED,
    *(replace(field, can_be_empty=False) for field in _OF_FAILURES if field.name in _ALWAYS_DECIDED),
    *(field for field in _OF_FAILURES if field.name == "ruleIndex"),
    *(field for field in (*_OF_FAILURES, *_OF_RUNS) if field.name in _DECISIONS_HAVE),
)
