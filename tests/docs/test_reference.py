"""The reference names everything there is, with its defaults: compared with the code, table by table."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lookout.exposition import exposition
from policies.decision import NO_UNTRIED_NODE_FITS, Verdict
from policies.documents import MAX_FACTOR, MAX_NAME_BYTES
from policies.failures import Disposition, InternalSubcategory
from policies.matchers import Condition, MatcherKind
from policies.wording import DecisionFacts, decision_sentence
from scheduler.actors import Permission, QueueVerb, Role
from scheduler.agent.config import AgentConfiguration, agent_configuration_from
from scheduler.agent.lifecycle import Limits
from scheduler.config import Configuration, configuration_from
from scheduler.executors.podspec import HONOURS, MEMORY_VOLUME_HONOURS, VOLUME_HONOURS
from scheduler.metrics import LABELS
from scheduler.queries.measurements import Measurements
from scheduler.states import EventKind, JobState, RunState, UndecidedBecause
from tests.docs.reading import CHECKOUT, REFERENCE, rows, text_of

CONFIGURATION = REFERENCE / "configuration.md"
POLICIES = REFERENCE / "policies.md"
CATEGORIES = REFERENCE / "categories.md"
STATES = REFERENCE / "states-and-events.md"
REST = REFERENCE / "rest.md"
GLOSSARY = REFERENCE / "glossary.md"


def _written(cell: str) -> str:
    return cell.strip("`")


def _document(keys: list[list[str]]) -> dict[str, Any]:
    """The configuration that a table of keys describes: each key with its default, where that is a value."""
    document: dict[str, Any] = {}
    for key, default, *_ in keys:
        if default.startswith("`"):
            *sections, last = _written(key).split(".")
            place = document
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = yaml.safe_load(_written(default))
    return document


def test_every_key_of_the_server_is_there_with_its_default() -> None:
    keys = rows(CONFIGURATION, after="## Keys of the server")
    assert configuration_from(_document(keys)) == Configuration()
    leaves = (
        len(dataclasses.fields(Configuration)) - 1 + len(dataclasses.fields(Configuration().retry_policy))
    )
    assert len(keys) == leaves


def test_every_key_of_the_agent_is_there_with_its_default() -> None:
    keys = rows(CONFIGURATION, after="## Keys of the agent")
    leaves = len(dataclasses.fields(AgentConfiguration)) - 1 + len(dataclasses.fields(Limits))
    assert len(keys) == leaves
    found, defaults = agent_configuration_from(_document(keys)), AgentConfiguration()
    compared = ("pool", "limits", "heartbeat_seconds", "local_nodes", "node_id_label", "categories")
    assert {name: getattr(found, name) for name in compared} == {
        name: getattr(defaults, name) for name in compared
    }


def _sources() -> list[Path]:
    found = [CHECKOUT / "tack"]
    for package in ("lookout", "scheduler"):
        found += sorted((CHECKOUT / package).rglob("*.py"))
    return found


def test_every_environment_variable_is_there_and_no_other() -> None:
    read = {
        name
        for source in _sources()
        for name in re.findall(r"\"(TACK(?:_[A-Z]+)+|DATABASE_URL|BROKER_URL)\"", source.read_text())
    }
    told = set(re.findall(r"`(TACK(?:_[A-Z]+)+|DATABASE_URL|BROKER_URL)`", text_of(CONFIGURATION)))
    assert told == read


def test_every_endpoint_is_there_and_no_other() -> None:
    paths = json.loads((REFERENCE / "openapi.json").read_text())["paths"]
    there = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    told = set(re.findall(r"\b((?:GET|POST|PUT|DELETE) /api/[^\s`?]+)", text_of(REST)))
    assert told == there | {"GET /api/v1/openapi.json"}


def test_every_parameter_of_the_address_is_there() -> None:
    paths = json.loads((REFERENCE / "openapi.json").read_text())["paths"]
    names = {
        parameter["name"]
        for methods in paths.values()
        for described in methods.values()
        for parameter in described.get("parameters", ())
        if parameter["in"] in ("query", "header")
    }
    told = text_of(REST) + text_of(REFERENCE / "filters.md")
    asked = {name.rstrip(">").removesuffix(".any").removesuffix(".last") for name in names}
    assert [name for name in sorted(asked) if name not in told] == []


def test_who_may_do_what_is_told_as_it_is() -> None:
    table = rows(REFERENCE / "permissions.md", after="## Roles")
    told = {
        (_written(permission), role)
        for permission, _, *marks in table
        for role, mark in zip(Role, marks, strict=True)
        if mark == "yes"
    }
    assert told == {(str(each), role) for role in Role for each in role.permissions}
    assert {_written(permission) for permission, *_ in table} == set(Permission)
    assert all(f"`{verb}`" in text_of(REFERENCE / "permissions.md") for verb in QueueVerb)


def _first_cells(page: Path, after: str) -> list[str]:
    return [name for cell, *_ in rows(page, after=after) for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize(
    ("place", "heading", "names"),
    [
        (STATES, "## Jobs", list(JobState)),
        (STATES, "## Runs", list(RunState)),
        (STATES, "## Events", list(EventKind)),
        (POLICIES, "## Verdicts and sentences", list(Verdict)),
        (POLICIES, "## Matching", list(InternalSubcategory)),
    ],
)
def test_every_word_of_a_closed_set_is_in_its_table(place: Path, heading: str, names: list[str]) -> None:
    assert sorted(_first_cells(place, heading)) == sorted(names)


def test_words_without_a_table_of_their_own_are_told() -> None:
    assert [each for each in UndecidedBecause if f"`{each}`" not in text_of(POLICIES)] == []
    words = [*MatcherKind, *Condition, *Disposition]
    assert [each for each in words if each not in text_of(CATEGORIES)] == []


def test_bounds_are_those_of_the_code() -> None:
    assert f"at most {MAX_FACTOR:.0f}." in text_of(POLICIES)
    assert f"at most {MAX_NAME_BYTES} bytes." in text_of(POLICIES)


def test_fields_the_local_executor_honours_are_there() -> None:
    page = text_of(REFERENCE / "local-executor.md")
    honoured = [*HONOURS, *VOLUME_HONOURS, *MEMORY_VOLUME_HONOURS]
    assert [path for path in honoured if path.rsplit(".", 1)[-1] not in page] == []


_MI = 2**20
_SENTENCES = [
    DecisionFacts(
        verdict=Verdict.RETRY, policy="oom-grow", version=1, rule_index=0, category="oom", policy_limit=2,
        global_limit=5, memory_from=64 * _MI, memory_to=128 * _MI,
    ),
    DecisionFacts(
        verdict=Verdict.RETRY, policy="moving", version=1, rule_index=0, category="oom", policy_used=1, policy_limit=2,
        global_limit=5, memory_from=128 * _MI, memory_to=256 * _MI, avoided_nodes=("second-1", "local-1"),
    ),
    DecisionFacts(
        verdict=Verdict.FAIL_RULE, policy="careful", version=2, rule_index=0, rule_subcategory="hopeless",
        category="oom",
    ),
    DecisionFacts(verdict=Verdict.FAIL_DEFAULT, policy="careful", version=2),
    DecisionFacts(
        verdict=Verdict.FAIL_POLICY_LIMIT, policy="moving", version=1, rule_index=0, category="oom", policy_used=2,
        policy_limit=2, global_used=2, global_limit=5,
    ),
    DecisionFacts(
        verdict=Verdict.FAIL_GLOBAL_LIMIT, policy="careful", version=2, global_used=5, global_limit=5,
    ),
    DecisionFacts(
        verdict=Verdict.RETRY_UNSCHEDULABLE, policy="moving", version=1, rule_index=0, category="oom", policy_limit=2,
        global_limit=5, reason=NO_UNTRIED_NODE_FITS,
    ),
    DecisionFacts(verdict=Verdict.NO_ERROR, policy="careful", version=2),
]  # fmt: skip


def test_sentences_about_decisions_are_quoted_as_they_are() -> None:
    quoted = [cell for _, cell in rows(POLICIES, after="## Verdicts and sentences")]
    assert quoted == [decision_sentence(facts) for facts in _SENTENCES]


def _metrics() -> list[str]:
    """The name of every metric: each is there where nothing has happened yet."""
    nothing = Measurements(totals=(), runs_awaiting_decision=0, oldest_seconds=0.0, heartbeats=())
    return re.findall(r"^# TYPE (\S+) ", exposition(nothing).decode(), re.MULTILINE)


def test_every_metric_is_there_and_no_other() -> None:
    page = REFERENCE / "metrics.md"
    tables = ("## Totals", "## What is so now", "## Times")
    told = {_written(name): labels for after in tables for name, labels, _ in rows(page, after=after)}
    assert sorted(told) == sorted(_metrics())
    counted = {tuple(re.findall(r"`(\w+)`", labels)) for labels in told.values()}
    assert {labels for metric, labels in LABELS.items() if "le" not in labels} <= counted


def _words() -> list[str]:
    return [re.sub(r"\*", "", word) for word, _ in rows(GLOSSARY, after="# Glossary")]


def test_words_of_the_glossary_are_in_order_and_in_use() -> None:
    words = _words()
    assert words == sorted(words)
    code = "\n".join(
        source.read_text().lower()
        for package in ("policies", "scheduler", "lookout")
        for source in sorted((CHECKOUT / package).rglob("*.py"))
    )
    assert [word for word in words if word.replace(" ", "_") not in code and word not in code] == []
