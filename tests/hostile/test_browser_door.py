"""What a browser, or whoever pretends to be one, may send to the pages: never a fault, and nothing changes."""

from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from pytest_django import Settings

from lookout.access import ensure_person
from scheduler.actors import Role
from scheduler.models import Change, Job, Queue, RetryPolicy
from scheduler.states import ChangeKind
from tests.factories import make_executor, make_job, make_policy, make_queue, make_run
from tests.hostile.soon import soon

pytestmark = pytest.mark.django_db

FORM = "application/x-www-form-urlencoded"
TEXTS = [
    "\x00",
    "\x1b[2J\n",
    "a\u202eb",
    "\ufffe",
    "'\"<script>",
    "{{7*7}}%s{}",
    "-1",
    "9" * 5_000,
    "x" * 100_000,
    "../..",
    "%00",
]

PAGES = [
    "/jobs?queue={}", "/jobs?state={}", "/jobs?id={}", "/jobs?jobSet={}", "/jobs?category.any={}",
    "/jobs?category.last={}", "/jobs?text={}", "/jobs?cursor={}", "/jobs?{}=1", "/jobs?filter={}&value={}",
    "/jobs?filter=queue&value={}", "/filter-form?filter={}&match={}&value={}", "/find?q={}", "/jobs?columns={}&columns={}",
    "/jobs/{}", "/jobs/{}/spec", "/jobs/{}/cancel", "/jobs/{}/reprioritize", "/jobs/{}/preempt",
    "/cancel-jobs?queue={}", "/reprioritize-jobs?queue=nightly&jobSet={}", "/preempt-jobs?queue=nightly&state={}", "/runs/{}/output",
    "/policies/{}", "/policies/{}/edit", "/policies/{}/delete", "/policies/oom-grow?version={}",
    "/policies/oom-grow?compare={}", "/policies/oom-grow/edit?from={}", "/queues/{}", "/queues/{}/edit",
    "/queues/nightly?open={}", "/fleet?pool={}", "/fleet?{}={}", "/sign-in?next={}", "/sign-in/{}", "/static/{}", "/{}",
]  # fmt: skip
FORMS: list[tuple[str, tuple[str, ...]]] = [
    ("/sign-in", ("username", "password", "next")),
    ("/sign-in/{}", ()),
    ("/choices", ("theme", "density", "keys", "next")),
    ("/check-policy", ("text", "name", "note", "based_on", "force")),
    ("/new-policy", ("text", "note", "based_on")),
    ("/policies/oom-grow/edit", ("text", "note", "based_on")),
    ("/new-queue", ("name", "priorityFactor", "userOwners", "groupOwners", "policy")),
    ("/queues/nightly/edit", ("priorityFactor", "userOwners", "groupOwners", "policy")),
    ("/queues/nightly/policies", ("policy", "add", "from")),
    ("/attach-policy", ("queue", "add", "detach", "from")),
    ("/queues/{}/cordon", ("cordoned",)),
    ("/queues/{}/delete", ()),
    ("/policies/{}/delete", ("detach",)),
    ("/jobs/{}/cancel", ("reason",)),
    ("/jobs/{}/reprioritize", ("priority",)),
    ("/jobs/{}/preempt", ("reason",)),
    ("/cancel-jobs?queue={}", ("reason",)),
    ("/reprioritize-jobs?queue=nightly&jobSet=none", ("priority",)),
    ("/preempt-jobs?queue={}&jobSet={}", ("reason",)),
]


@pytest.fixture
def olga() -> Client:
    """Signed in as an operator, beside a queue, a policy and a job with a run."""
    make_policy()
    make_queue("nightly", policies=("oom-grow",))
    make_run(make_job("nightly"), executor=make_executor())
    return signed_in("olga", Role.OPERATOR)


def signed_in(name: str, role: Role) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(ensure_person(name, role=role))
    return client


def state() -> tuple[Any, ...]:
    """What no refused request may change."""
    queues = Queue.objects.order_by("name").values_list("name", "priority_factor", "owners", "cordoned")
    policies = RetryPolicy.objects.order_by("name").values_list("name", "version")
    return list(queues), list(policies), list(Job.objects.values_list("id", "state"))


@pytest.mark.parametrize("form_of_address", PAGES)
def test_no_address_of_a_page_ends_in_a_fault(olga: Client, form_of_address: str) -> None:
    before = state()
    for text in TEXTS:
        with soon():
            answer = olga.get(form_of_address.replace("{}", quote(text, safe="")))
        assert answer.status_code < 500, text
        assert "<script>" not in answer.content.decode(errors="replace").replace("<script>'", ""), text
    assert state() == before


@pytest.mark.parametrize(("form", "names"), FORMS)
def test_no_form_ends_in_a_fault(olga: Client, form: str, names: tuple[str, ...], settings: Settings) -> None:
    # The real one is slow on purpose, and what it is given is a text like any other.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    before = state()
    for text in TEXTS:
        address = form.replace("{}", quote(text, safe=""))
        for name in names or ("none",):
            with soon(seconds=2):
                answer = olga.post(address, {name: text})
            assert answer.status_code < 500, (name, text)
    queues, policies, jobs = state()
    assert (len(queues), policies, jobs) == (1, before[1], before[2])
    assert Change.objects.exclude(kind__in=[ChangeKind.UPDATE_QUEUE, ChangeKind.ATTACH_POLICIES]).count() == 0


@pytest.mark.parametrize(
    "cookie",
    [
        'tack_session="aaaaaaaaaaaa\\000"',
        'tack_session="aaaaaaaaaaaa\\377"',
        "tack_session=" + "a" * 100_000,
        "tack_session=' OR 1=1 --",
        'csrftoken="\\000"',
        'messages="\\000"',
        'tack_theme="\\000"; tack_density=<script>; tack_keys=' + "x" * 5_000,
        "=;;;=,\x7f",
    ],
)
def test_a_cookie_nobody_of_us_made_is_nobodys(cookie: str) -> None:
    client = Client(raise_request_exception=False, headers={"Cookie": cookie})
    assert client.get("/jobs").status_code == 302
    assert client.get("/sign-in").status_code == 200
    assert client.get("/api/v1/queues").status_code == 401
    assert client.post("/sign-in", {"username": "x", "password": "x"}).status_code == 400


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"--x\r\nfoo", "multipart/form-data; boundary=x"),
        (b"--x\r\nfoo", "multipart/form-data"),
        (b"--x\r\nfoo", "multipart/form-data; boundary=" + "x" * 5_000),
        (b"username=%00&password=%ff%fe", FORM),
        (b"username=+2AA-&password=x", f"{FORM}; charset=utf-7"),
        (b"username=x", f"{FORM}; charset=base64"),
        (b"username=" + b"x" * 10_000_000, FORM),
        (b"&".join(b"a%d=1" % number for number in range(5_000)), FORM),
        (b'{"username": "x"}', "application/json"),
        (b"\xff" * 1_000, "nonsense"),
    ],
)
def test_a_body_that_is_no_form(body: bytes, kind: str) -> None:
    client = Client(raise_request_exception=False)
    for address in ("/sign-in", "/choices", "/new-queue"):
        with soon(seconds=2):
            answer = client.generic("POST", address, body, content_type=kind)
        assert answer.status_code < 500


def test_text_is_utf8_whatever_a_header_says(olga: Client) -> None:
    lone_half = "+2AA-"  # U+D800 in UTF-7
    for address in ("/jobs?queue=", "/find?q=", "/api/v1/jobs?queue="):
        answer = olga.generic("GET", address + quote(lone_half), content_type="text/plain; charset=utf-7")
        assert answer.status_code < 500
    multipart = (
        f'--x\r\nContent-Disposition: form-data; name="username"\r\n\r\n{lone_half}\r\n--x--\r\n'.encode()
    )
    answer = olga.generic(
        "POST", "/sign-in", multipart, content_type="multipart/form-data; boundary=x; charset=utf-7"
    )
    assert answer.status_code < 500


@pytest.mark.parametrize("host", ["evil.example", "a\nb", "", "\x00", "[::1", "x" * 5_000])
def test_a_host_that_is_not_ours_is_refused(host: str) -> None:
    client = Client(raise_request_exception=False, headers={"Host": host})
    assert client.get("/sign-in").status_code == 400
    refused = client.get("/api/v1/queues")
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "invalid"


def test_nobody_is_led_away(olga: Client) -> None:
    for wanted in (
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/\r\nSet-Cookie: a=b",
    ):
        answer = olga.get("/sign-in", {"next": wanted})
        assert answer.status_code == 302
        assert answer.headers["Location"] in ("/", quote(wanted, safe="/:=%"))
        assert "Set-Cookie" not in answer.headers["Location"] or "%0D%0A" in answer.headers["Location"]
