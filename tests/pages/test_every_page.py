"""What holds for every page: nothing inline, no sign missing, nothing from elsewhere, choices kept."""

import hashlib
import re
import tomllib
from pathlib import Path

import pytest
from django.test import Client

from scheduler.models import RunOutput
from tests.factories import make_executor, make_job, make_policy
from tests.pages.conftest import HTMX
from tests.pages.seen import Seen, seen
from tests.pages.stories import succeeded_job

STATIC = Path(__file__).parents[2] / "lookout" / "static" / "lookout"
ADDRESSES = (
    "/jobs", "/jobs?queue=nightly&filter=state", "/jobs?state=nothing", "/jobs/{job}", "/jobs/{job}?open=1", "/jobs/{job}/cancel",
    "/jobs/{job}/reprioritize", "/jobs/{job}/preempt", "/cancel-jobs?queue=nightly", "/preempt-jobs?queue=nightly&jobSet=a",
    "/policies", "/new-policy", "/policies/oom-grow", "/policies/oom-grow/edit", "/policies/oom-grow/delete",
    "/queues", "/new-queue", "/queues/nightly", "/queues/nightly/edit", "/queues/nightly/delete", "/fleet",
    "/queues/nightly/cordon", "/executors/local/cordon", "/executors/local/nodes/local-1/cordon", "/executors/local/delete",
    "/jobs/unknown", "/sign-in", "/sign-in/x", "/nothing-here",
)  # fmt: skip


@pytest.fixture
def job_id(db: None) -> str:
    """A place of each kind exists, so that every address leads somewhere."""
    job = succeeded_job()
    make_policy(note="again", retryLimit=7)
    RunOutput.objects.create(run=job.runs.get(number=1), head=b"words\n")
    return job.id


@pytest.fixture(params=ADDRESSES)
def html(request: pytest.FixtureRequest, as_olga: Client, job_id: str) -> str:
    """The text of each page in turn."""
    answer = as_olga.get(request.param.format(job=job_id), follow=False)
    if answer.status_code == 302:  # who is signed in need not sign in
        answer = Client().get(request.param)
    return answer.content.decode()


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(html: str) -> None:
    page = seen(html)
    for tag, attributes in page.tags:
        assert tag != "style"
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith(("on", "hx-on"))]
        assert tag != "script" or attributes["src"].startswith("/static/")
        for name in ("src", "href", "action"):
            assert not attributes.get(name, "").startswith(("http", "//", "javascript:", "data:"))
        assert "js:" not in " ".join(value for name, value in attributes.items() if name.startswith("hx-"))


def test_every_sign_that_is_used_is_drawn(html: str) -> None:
    page = seen(html)
    drawn = {attributes["id"] for attributes in page.attributes("symbol")}
    used = {attributes["href"].removeprefix("#") for attributes in page.attributes("use")}
    assert used <= drawn


def test_ids_are_unique_and_labels_lead_to_fields(html: str) -> None:
    page = seen(html)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in page.attributes("label"):
        assert "for" not in attributes or attributes["for"] in ids
    for name in ("aria-labelledby", "aria-describedby", "list"):
        assert {a[name] for _, a in page.tags if name in a} - {"dialog-head"} <= set(ids)


def test_no_name_of_a_template_is_left_in_a_page(html: str) -> None:
    assert not re.search(r"{%|{#|{{ | }}", html)
    assert "None" not in seen(html).words


@pytest.mark.parametrize("address", ["/jobs", "/sign-in"])
def test_a_page_may_load_from_nowhere_else(as_olga: Client, address: str) -> None:
    policy = (as_olga if address == "/jobs" else Client()).get(address).headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


def test_pages_are_never_cached_and_differ_for_htmx(as_olga: Client) -> None:
    answer = as_olga.get("/jobs")
    assert "no-store" in answer.headers["Cache-Control"]
    assert {"HX-Request", "Cookie"} <= {name.strip() for name in answer.headers["Vary"].split(",")}


def _root(client: Client) -> dict[str, str]:
    return seen(client.get("/jobs")).attributes("html")[0]


def test_choices_are_kept_in_this_browser(as_olga: Client) -> None:
    form = {"theme": "dark", "density": "compact", "keys": "off", "next": "/queues"}
    assert as_olga.post("/choices", form).headers["Location"] == "/queues"
    assert _root(as_olga) == {
        "lang": "en",
        "data-theme": "dark",
        "data-density": "compact",
        "data-keys": "off",
    }
    as_olga.post("/choices", {"theme": "", "density": "", "keys": "nonsense"})
    assert _root(as_olga) == {"lang": "en"}


def test_a_cookie_nobody_of_us_wrote_is_no_choice(as_olga: Client) -> None:
    as_olga.cookies["tack_theme"] = '"><script>'
    assert _root(as_olga) == {"lang": "en"}


def test_the_start_leads_to_the_jobs(as_olga: Client) -> None:
    assert as_olga.get("/").headers["Location"] == "/jobs"


def test_healthz_asks_nobody_and_needs_no_sign_in() -> None:
    assert Client().get("/healthz").content == b"ok\n"


@pytest.mark.django_db
def test_a_category_keeps_its_place_on_every_page(as_olga: Client) -> None:
    names = ("oom", "gpu", "storage", "user-code", "licence")
    make_executor(categories=[{"name": name, "disposition": "Delete"} for name in names])
    places = {
        tag["class"] for name, tag in seen(as_olga.get("/fleet")).tags if "cat " in tag.get("class", "")
    }
    assert places == {"cat k1", "cat k2", "cat k3", "cat k4", "cat k5", "cat k6"}


@pytest.mark.django_db
def test_a_method_that_means_nothing_here_is_refused(as_olga: Client) -> None:
    make_job()
    assert as_olga.post("/jobs").status_code == 405
    assert as_olga.delete("/fleet").status_code == 405
    assert as_olga.get("/choices").status_code == 405


def test_vendored_files_are_those_their_makers_published() -> None:
    manifest = tomllib.loads((STATIC / "vendor" / "manifest.toml").read_text())
    listed = {entry["name"]: entry for entry in manifest["file"]}
    there = {path.name for path in (STATIC / "vendor").iterdir()} - {"manifest.toml"}
    assert set(listed) == there
    for name, entry in listed.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == entry["sha256"]
        assert entry["licence"]
        assert entry["version"]


def test_a_refusal_keeps_the_page_around_it(as_olga: Client, job_id: str) -> None:
    page: Seen = seen(as_olga.get("/jobs/unknown"))
    assert page.links["Jobs"] == "/jobs"
    assert "olga" in page.words
    assert as_olga.get("/jobs/unknown", headers=HTMX).status_code == 404
