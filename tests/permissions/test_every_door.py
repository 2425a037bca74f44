"""Everybody tries every door."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from lookout.access import ensure_person, issue_token
from lookout.api.armada.urls import urlpatterns as lookout_addresses
from lookout.api.v1.openapi import openapi
from lookout.models import Scope
from scheduler.actors import Role
from scheduler.models import Change, RunOutput
from scheduler.models.clock import database_now
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run
from tests.permissions.matrix import AGENTS, ROWS, At, Door, Row, Who

pytestmark = pytest.mark.django_db

PERSONS: dict[Who, tuple[str, Role, list[str]]] = {
    Who.READER: ("rita", Role.READER, []),
    Who.SUBMITTER: ("sam", Role.SUBMITTER, []),
    Who.OWNER: ("alice", Role.READER, []),
    Who.GROUP: ("gina", Role.READER, ["data"]),
    Who.MAY_SUBMIT: ("greg", Role.READER, []),
    Who.MAY_CANCEL: ("carl", Role.READER, []),
    Who.MAY_REPRIORITIZE: ("rob", Role.READER, []),
    Who.MAY_PREEMPT: ("pam", Role.READER, []),
    Who.OPERATOR: ("olga", Role.OPERATOR, []),
    Who.ADMIN: ("ada", Role.ADMIN, []),
}
EXECUTORS = {Who.AGENT: "local", Who.OTHER_AGENT: "other"}


def rows(wanted: Callable[[Door], bool] = lambda _: True) -> pytest.MarkDecorator:
    """Decorates a test of each row, with those of its doors that are wanted."""
    found = [(row, [door for door in row.doors if wanted(door)]) for row in ROWS]
    found = [(row, doors) for row, doors in found if doors]
    return pytest.mark.parametrize(("row", "doors"), found, ids=[row.what for row, _ in found])


@dataclass(frozen=True, kw_only=True, slots=True)
class House:
    """What the table speaks of, and what everybody who comes by has in hand."""

    names: Mapping[str, str]
    tokens: Mapping[Who, str]
    sessions: Mapping[Who, SimpleCookie]

    def with_token(self, who: Who, **more: Any) -> Client:
        """Somebody who sends a token with every request, if they can have one."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who in self.tokens else {}
        return Client(raise_request_exception=False, headers=headers, **more)

    def signed_in(self, who: Who, **more: Any) -> Client:
        """Somebody with a session, if they can have one."""
        if who not in self.sessions:
            return self.with_token(who)
        client = Client(raise_request_exception=False, **more)
        client.cookies = SimpleCookie(self.sessions[who].output(header="", sep=";"))
        return client


@pytest.fixture
def house() -> House:
    """What there is before each request: whatever one did is taken back."""
    persons = {
        who: ensure_person(name, role=role, groups=groups) for who, (name, role, groups) in PERSONS.items()
    }
    tokens = {who: issue_token(person) for who, person in persons.items()}
    for agent, executor in EXECUTORS.items():
        tokens[agent] = issue_token(persons[Who.ADMIN], Scope.EXECUTOR, executor=executor)
    sessions = {}
    for who, person in persons.items():
        client = Client()
        client.force_login(person)
        sessions[who] = client.cookies
    return House(names=furnished(), tokens=tokens, sessions=sessions)


@contextmanager
def taken_back() -> Iterator[None]:
    """What is written meanwhile has never been."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def furnished() -> dict[str, str]:
    """A queue with its people, a job with a run, a policy, a queue without jobs."""
    grants = [
        {"subjects": [{"kind": "User", "name": name}], "verbs": [verb]}
        for name, verb in (
            ("greg", "submit"),
            ("carl", "cancel"),
            ("rob", "reprioritize"),
            ("pam", "preempt"),
        )
    ]
    make_queue("nightly", owners=["alice"], group_owners=["data"], permissions=grants)
    make_queue("empty")
    make_policy()
    job = make_job("nightly", priority_class="armada-preemptible")
    run = make_run(job, executor=make_executor())
    RunOutput.objects.create(run=run, head=b"hello")
    make_executor("gone", heartbeat_at=database_now() - timedelta(days=1))
    return {
        "queue": "nightly",
        "empty": "empty",
        "policy": "oom-grow",
        "job": job.id,
        "run": str(run.id),
        "silent": "gone",
    }


@rows()
def test_who_may_do_what(row: Row, doors: Sequence[Door], house: House) -> None:
    for door in doors:
        come = house.signed_in if door.at is At.PAGE else house.with_token
        found = {who: outcome(come(who), door, house) for who in Who}
        expected = {who: door.status if who in row.who else refused(door, who) for who in Who}
        assert found == expected, door.request


@rows(lambda door: door.at is not At.PAGE)
def test_a_session_opens_what_the_persons_token_opens(row: Row, doors: Sequence[Door], house: House) -> None:
    for door in doors:
        found = {who: outcome(house.signed_in(who), door, house) for who in PERSONS}
        expected = {who: door.status if who in row.who else 403 for who in PERSONS}
        if door.at is At.EXECUTOR:
            expected = dict.fromkeys(PERSONS, 401)
        elif not door.by_session:
            expected = dict.fromkeys(PERSONS, 403)
        assert found == expected, door.request


def refused(door: Door, who: Who) -> int:
    """How whoever may not is answered: by pages with the way to sign in, where nobody is signed in."""
    if door.at is At.PAGE:
        return 302 if who in AGENTS | {Who.ANONYMOUS} else 403
    return 401 if who is Who.ANONYMOUS else 403


def outcome(visitor: Client, door: Door, house: House) -> int:
    """The status somebody gets. What it changed is taken back; a refusal has changed nothing."""
    with taken_back():
        changes = Change.objects.count()
        answer = knock(visitor, door, house)
        for close in answer._resource_closers:  # an export that was opened is not read
            close()
        if answer.status_code in (401, 403):
            assert Change.objects.count() == changes
        if door.at is At.PAGE and answer.status_code == 302 != door.status:
            assert answer.headers["Location"].startswith("/sign-in")
        return int(answer.status_code)


def knock(client: Client, door: Door, house: House) -> Any:
    method, path = door.request.format(**house.names).split(" ")
    if door.at is At.PAGE:
        return client.get(path) if method == "GET" else client.post(path, door.body or {})
    body = json.dumps(door.body) if door.body is not None else ""
    for name, value in house.names.items():
        body = body.replace(f"{{{name}}}", value)
    path = path if door.at is At.PROGRAM else f"/api/{path}"
    return client.generic(method, path, body, content_type="application/json")


@rows(lambda door: not door.request.startswith("GET"))
def test_a_form_of_another_site_is_refused(row: Row, doors: Sequence[Door], house: House) -> None:
    client = house.signed_in(Who.ADMIN, enforce_csrf_checks=True)
    changes = Change.objects.count()
    for door in doors:
        expected = 401 if door.at is At.EXECUTOR else 403
        assert knock(client, door, house).status_code == expected, door.request
    assert Change.objects.count() == changes


def test_the_table_has_every_operation_of_the_api() -> None:
    told = {plain(door.request) for row in ROWS for door in row.doors if door.at in (At.REST, At.EXECUTOR)}
    known = {
        f"{method.upper()} {path.removeprefix('/api/')}"
        for path, methods in openapi()["paths"].items()
        for method in methods
    }
    assert told - {"GET v1/openapi.json"} == {plain(each) for each in known}


def test_the_table_has_every_page() -> None:
    told = {
        plain(door.request).split(" ")[1]
        for row in ROWS
        for door in row.doors
        if door.at in (At.PAGE, At.PROGRAM) and "/lookout/" not in door.request
    }
    known = {
        plain(f"GET /{each.pattern}").split(" ")[1]
        for each in get_resolver().url_patterns
        if isinstance(each, URLPattern)
    }
    assert {path.replace("/sign-in/*", "/sign-in") for path in told} == {
        path.replace("/sign-in/*", "/sign-in") for path in known
    }
    assert [str(each.pattern) for each in get_resolver().url_patterns if isinstance(each, URLResolver)] == [
        "api/",
        "lookout/",
    ]


def test_the_table_has_every_address_of_lookout() -> None:
    told = {door.request for row in ROWS for door in row.doors if "/lookout/" in door.request}
    known = {f"POST /lookout/{each.pattern}" for each in lookout_addresses if str(each.pattern)}
    assert told == known


def plain(request: str) -> str:
    """A request without what its names stand for."""
    method, path = request.partition("?")[0].split(" ")
    named = re.sub(r"(?<=/)([{<][^}>]*[}>]|local(?:-1)?|none|1)(?=/|$)", "*", path)
    return f"{method} {named}"
