"""Coming in and going out."""

import pytest
from django.test import Client

from lookout.access import ensure_admin, issue_sign_in_link
from tests.pages.conftest import HTMX
from tests.pages.seen import seen

pytestmark = pytest.mark.django_db


def test_opening_a_sign_in_link_spends_nothing() -> None:
    link = issue_sign_in_link(ensure_admin())
    for _ in range(3):
        answer = Client().get(link)
        assert answer.status_code == 200
        assert "This link signs you in once." in seen(answer).words


def test_the_button_of_a_sign_in_link_signs_in_once() -> None:
    link = issue_sign_in_link(ensure_admin())
    client = Client()
    assert client.post(link).headers["Location"] == "/"
    assert "Jobs" in seen(client.get("/jobs")).words

    again = Client().post(link)
    assert again.status_code == 410
    assert "This sign-in link was used, has expired or was never made." in seen(again).words


def test_a_link_nobody_made_signs_nobody_in() -> None:
    assert Client().post("/sign-in/nothing-of-ours").status_code == 410


def test_a_link_that_signs_nobody_in_says_so_before_it_is_pressed() -> None:
    link = issue_sign_in_link(ensure_admin())
    assert Client().get(link).status_code == 200
    assert Client().post(link).status_code == 302
    for address in (link, "/sign-in/nothing-of-ours"):
        answer = Client().get(address)
        assert answer.status_code == 410
        page = seen(answer)
        assert "Sign in with name and password" in page.links
        assert page.attributes("button") == []


def test_name_and_password_sign_in_and_lead_to_where_one_wanted_to_be() -> None:
    admin = ensure_admin()
    admin.set_password("a long enough secret")
    admin.save()
    typed = {"username": "admin", "password": "a long enough secret", "next": "/queues"}
    assert Client().post("/sign-in", typed).headers["Location"] == "/queues"


def test_a_wrong_password_is_told_beside_the_field_and_the_name_stays() -> None:
    ensure_admin()
    answer = Client().post("/sign-in", {"username": "admin", "password": "guess"})
    assert answer.status_code == 400
    page = seen(answer)
    assert "Name and password do not match." in page.words
    fields = {field.get("name"): field for field in page.attributes("input")}
    assert fields["username"]["value"] == "admin"
    assert fields["password"]["aria-invalid"] == "true"


@pytest.mark.parametrize(
    "elsewhere", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"]
)
def test_nobody_is_sent_to_another_site(elsewhere: str) -> None:
    admin = ensure_admin()
    admin.set_password("a long enough secret")
    admin.save()
    typed = {"username": "admin", "password": "a long enough secret", "next": elsewhere}
    assert Client().post("/sign-in", typed).headers["Location"] == "/"


@pytest.mark.parametrize(
    "address", ["/jobs", "/jobs/x", "/policies", "/policies/x", "/queues", "/queues/x", "/fleet", "/find?q=x"]
)
def test_pages_are_for_people_who_are_signed_in(address: str) -> None:
    answer = Client().get(address)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in?next=%2F")


def test_a_live_part_whose_session_ended_sends_the_whole_browser_to_sign_in() -> None:
    headers = {**HTMX, "HX-Current-URL": "http://testserver/jobs?state=failed"}
    answer = Client().get("/jobs?state=failed", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/sign-in?next=%2Fjobs%3Fstate%3Dfailed"


def test_signing_out_ends_the_session(as_olga: Client) -> None:
    assert as_olga.post("/sign-out").headers["Location"] == "/sign-in"
    assert as_olga.get("/jobs").status_code == 302


def test_signing_out_needs_a_post(as_olga: Client) -> None:
    assert as_olga.get("/sign-out").status_code == 405
