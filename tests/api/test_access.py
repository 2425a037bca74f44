"""Tokens, sign-in links, and who is behind a request."""

import hashlib
import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.test import Client

from lookout.access import (
    SignInLinkSpent,
    TokenUnknown,
    ensure_admin,
    ensure_person,
    issue_sign_in_link,
    issue_token,
    spend_sign_in_link,
    token_of,
)
from lookout.models import Scope, SignInLink, Token
from scheduler.actors import Permission, Role
from tests.api.caller import Caller, agent, caller

pytestmark = pytest.mark.django_db


def test_the_admin_of_the_first_start_is_made_once() -> None:
    first = ensure_admin()
    ensure_person("admin", role=Role.READER)
    assert ensure_admin() == first
    assert first.profile.role == Role.ADMIN
    assert User.objects.get(username="admin").profile.role == Role.READER
    assert not first.has_usable_password()


def test_only_the_hash_of_a_token_is_kept() -> None:
    secret = issue_token(ensure_admin())
    token = Token.objects.get()
    assert token.hash == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(Token.objects.values().get())
    assert len(secret) >= 43  # 256 bits in base64


def test_a_token_is_its_owners() -> None:
    token = token_of(issue_token(ensure_person("alice"), note="laptop"))
    assert (token.owner.username, token.scope, token.note) == ("alice", Scope.API, "laptop")


@pytest.mark.parametrize("secret", ["", "x", "é" * 50, "a" * 100_000])
def test_an_unknown_token_is_refused(secret: str) -> None:
    with pytest.raises(TokenUnknown):
        token_of(secret)


def test_an_expired_token_is_refused() -> None:
    secret = issue_token(ensure_admin(), expires=timedelta(seconds=-1))
    assert Caller(token=secret).get("v1/me").status == 401


def test_the_token_of_somebody_who_left_is_refused() -> None:
    person = ensure_person("alice")
    secret = issue_token(person)
    person.is_active = False
    person.save()
    assert Caller(token=secret).get("v1/me").status == 401


@pytest.mark.parametrize(("scope", "executor"), [(Scope.API, "local"), (Scope.EXECUTOR, "")])
def test_a_token_names_an_executor_exactly_when_it_is_an_agents(scope: Scope, executor: str) -> None:
    with pytest.raises(IntegrityError):
        issue_token(ensure_admin(), scope, executor=executor)


def test_a_sign_in_link_signs_in_once() -> None:
    path = issue_sign_in_link(ensure_admin())
    secret = path.removeprefix("/sign-in/")
    assert spend_sign_in_link(secret).username == "admin"
    with pytest.raises(SignInLinkSpent, match="tack login"):
        spend_sign_in_link(secret)


def test_only_the_hash_of_a_sign_in_link_is_kept() -> None:
    secret = issue_sign_in_link(ensure_admin()).removeprefix("/sign-in/")
    assert secret not in str(SignInLink.objects.values().get())


def test_a_sign_in_link_is_good_for_ten_minutes() -> None:
    issue_sign_in_link(ensure_admin())
    link = SignInLink.objects.get()
    assert link.expires_at - link.created_at == timedelta(minutes=10)


def test_an_expired_sign_in_link_signs_nobody_in() -> None:
    secret = issue_sign_in_link(ensure_admin()).removeprefix("/sign-in/")
    SignInLink.objects.update(
        created_at=SignInLink.objects.get().created_at - timedelta(minutes=11),
        expires_at=SignInLink.objects.get().created_at - timedelta(seconds=1),
    )
    with pytest.raises(SignInLinkSpent):
        spend_sign_in_link(secret)


def test_a_link_of_somebody_who_left_signs_nobody_in() -> None:
    person = ensure_person("alice")
    secret = issue_sign_in_link(person).removeprefix("/sign-in/")
    person.is_active = False
    person.save()
    with pytest.raises(SignInLinkSpent):
        spend_sign_in_link(secret)


def test_expired_links_are_cleared_away() -> None:
    issue_sign_in_link(ensure_admin())
    SignInLink.objects.update(
        created_at=SignInLink.objects.get().created_at - timedelta(hours=1),
        expires_at=SignInLink.objects.get().created_at - timedelta(minutes=1),
    )
    issue_sign_in_link(ensure_admin())
    assert SignInLink.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_who_spend_a_link_at_once_one_gets_in() -> None:
    secret = issue_sign_in_link(ensure_admin()).removeprefix("/sign-in/")
    together = threading.Barrier(8)
    came_in: list[str] = []

    def spend() -> None:
        together.wait()
        try:
            came_in.append(spend_sign_in_link(secret).username)
        except SignInLinkSpent:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came_in == ["admin"]


def test_a_new_link_is_asked_for_with_a_token() -> None:
    admin = Caller(token=issue_token(ensure_admin()))
    answer = admin.post("v1/sign-in-links")
    assert answer.status == 201
    assert answer.body["url"] == f"http://testserver{answer.body['path']}"
    assert spend_sign_in_link(answer.body["path"].removeprefix("/sign-in/")).username == "admin"


def test_a_session_makes_no_link() -> None:
    client = Client()
    client.force_login(ensure_admin())
    assert Caller(client=client).post("v1/sign-in-links").status == 403


def test_me_says_who_is_asking() -> None:
    body = caller("alice", Role.SUBMITTER, groups=["data", "ai"]).get("v1/me").body
    assert body == {
        "name": "alice",
        "role": "submitter",
        "permissions": ["submit_any_jobs"],
        "groups": ["ai", "data"],
    }


def test_an_operator_may_do_everything_to_queues_and_policies() -> None:
    body = caller("olga", Role.OPERATOR).get("v1/me").body
    assert set(body["permissions"]) == {str(permission) for permission in Permission}


def test_a_person_without_a_profile_reads() -> None:
    token = issue_token(User.objects.create_user("guest"))
    assert Caller(token=token).get("v1/me").body["role"] == "reader"


@pytest.mark.parametrize("header", ["Bearer", "Bearer nonsense", "Basic YWRtaW46YWRtaW4=", "nonsense"])
def test_what_is_no_good_token_is_refused_even_beside_a_session(header: str) -> None:
    client = Client()
    client.force_login(ensure_admin())
    answer = Caller(client=client).get("v1/me", headers={"Authorization": header})
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.error["code"] == "unauthenticated"


def test_a_session_reads_without_and_writes_with_the_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(ensure_admin())
    person = Caller(client=client)
    assert person.get("v1/me").status == 200
    refused = person.post("v1/queues", {"name": "nightly"})
    assert refused.status == 403
    assert "CSRF" in refused.error["message"]
    secret = "x" * 32
    client.cookies["csrftoken"] = secret
    assert person.post("v1/queues", {"name": "nightly"}, headers={"X-CSRFToken": "y" * 32}).status == 403
    assert person.post("v1/queues", {"name": "nightly"}, headers={"X-CSRFToken": secret}).status == 201


def test_a_token_needs_no_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    token = issue_token(ensure_admin())
    assert Caller(token=token, client=client).post("v1/sign-in-links").status == 201


def test_an_agents_token_is_for_the_executor_api_only() -> None:
    answer = agent("local").get("v1/me")
    assert (answer.status, answer.error["code"]) == (403, "wrong_scope")


def test_a_persons_token_is_not_for_the_executor_api() -> None:
    answer = caller("admin", Role.ADMIN).post("executor/v1/work", {"executor": "local", "runs": []})
    assert (answer.status, answer.error["code"]) == (403, "wrong_scope")


def test_a_session_is_not_for_the_executor_api() -> None:
    client = Client()
    client.force_login(ensure_admin())
    assert Caller(client=client).post("executor/v1/work", {}).status == 401


def test_a_command_makes_people_and_lets_them_in(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("person", "olga", "--role", "operator", "--group", "ops", "--token", "--sign-in-link")
    link, token = capsys.readouterr().out.split()
    assert token_of(token).owner.username == "olga"
    assert spend_sign_in_link(link.partition("/sign-in/")[2]).profile.groups == ["ops"]
    call_command("person", "olga", "--agent-token", "local")
    assert token_of(capsys.readouterr().out.strip()).executor == "local"
    assert User.objects.get(username="olga").profile.role == Role.OPERATOR


def test_a_sign_in_link_begins_with_the_address_people_use(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("person", "olga", "--sign-in-link", "--url", "https://tack.example.org/")
    assert capsys.readouterr().out.startswith("https://tack.example.org/sign-in/")
    call_command("person", "olga", "--sign-in-link", "--url", "")
    said = capsys.readouterr()
    assert said.out.startswith("/sign-in/")
    assert "Put Tack's address before it" in said.err


def test_tokens_are_listed_by_ids_that_open_nothing_and_revoked_by_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ensure_person("olga")
    call_command("token", "create", "olga", "--days", "7", "--note", "reports")
    secret = capsys.readouterr().out.strip()
    other = issue_token(ensure_person("agents"), Scope.EXECUTOR, executor="rack-7")
    token = token_of(secret)
    assert token.expires_at is not None and token.expires_at - token.created_at >= timedelta(days=6, hours=23)
    call_command("token", "list")
    listed = capsys.readouterr().out
    assert secret not in listed and other not in listed and token.hash not in listed
    assert [line.split()[:3] for line in listed.splitlines()[1:]] == [
        [token.public_id, "olga", "REST"],
        [token_of(other).public_id, "agents", "executor"],
    ]
    call_command("token", "revoke", token.public_id)
    assert capsys.readouterr().out == f"Revoked token {token.public_id} of olga\n"
    assert Caller(token=secret).get("v1/me").status == 401
    assert token_of(other).executor == "rack-7"


def test_an_id_that_is_no_tokens_revokes_nothing() -> None:
    secret = issue_token(ensure_person("olga"))
    for ids in (["000000000000"], [token_of(secret).public_id, "nope-nope"], [""], ["%"]):
        with pytest.raises(CommandError, match="There is no token"):
            call_command("token", "revoke", *ids)
    assert token_of(secret).owner.username == "olga"
    with pytest.raises(CommandError, match="There is no person 'bob'"):
        call_command("token", "create", "bob")
