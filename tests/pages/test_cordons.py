"""Closing and opening queues, executors and nodes, and taking executors away, by forms that need no script."""

from datetime import timedelta

import pytest
from django.test import Client

from scheduler.models import Change, Executor, Node, Queue
from scheduler.models.clock import database_now
from tests.factories import make_executor, make_job, make_queue, make_run
from tests.pages.conftest import HTMX
from tests.pages.seen import seen

pytestmark = pytest.mark.django_db


def test_the_question_says_what_follows_and_asks_why(as_olga: Client) -> None:
    make_executor("local")
    page = seen(as_olga.get("/executors/local/nodes/local-2/cordon"))
    assert (
        "Cordon node local-2? Runs on it go on. No new one starts there until it is uncordoned." in page.words
    )
    part = as_olga.get("/executors/local/cordon", headers=HTMX)
    assert b"<html" not in part.content
    assert "Cordon executor local?" in seen(part).words


def test_a_node_is_closed_with_a_reason_that_everybody_sees(as_olga: Client, as_bob: Client) -> None:
    make_executor("local")
    sent = {"cordoned": "true", "reason": "Disk is being replaced."}
    answer = as_olga.post("/executors/local/nodes/local-2/cordon", sent)
    assert answer.headers["Location"] == "/fleet"
    words = seen(as_olga.get("/fleet")).words
    assert "Node local-2 starts no more jobs." in words
    assert "1 closed" in words
    shown = seen(as_bob.get("/fleet")).words
    assert "local-2 is cordoned by olga: Disk is being replaced. No new run starts on it." in shown
    assert "Cordon…" not in shown
    opened = seen(as_olga.get("/executors/local/nodes/local-2/cordon")).words
    assert "olga cordoned it: Disk is being replaced." in opened
    as_olga.post("/executors/local/nodes/local-2/cordon", {"cordoned": "false"})
    assert not Node.objects.filter(cordoned=True).exists()


def test_an_executor_is_closed_and_opened(as_olga: Client) -> None:
    make_executor("local")
    as_olga.post("/executors/local/cordon", {"cordoned": "true", "reason": "move"})
    words = seen(as_olga.get("/fleet")).words
    assert "Executor local starts no more jobs." in words
    assert "local healthy cordoned" in words
    assert "local is cordoned by olga: move. No new run starts on its nodes." in words
    as_olga.post("/executors/local/cordon", {"cordoned": "false"})
    assert "Executor local starts jobs again." in seen(as_olga.get("/fleet")).words


def test_a_queue_is_asked_about_and_keeps_the_reason_in_the_change_log(as_olga: Client) -> None:
    make_queue("nightly")
    words = seen(as_olga.get("/queues/nightly/cordon")).words
    assert "Cordon queue nightly? Its jobs that run go on." in words
    as_olga.post("/queues/nightly/cordon", {"cordoned": "true", "reason": "month end"})
    assert Queue.objects.get().cordoned
    assert Change.objects.get().note == "month end"


def test_a_silent_executor_is_taken_away(as_olga: Client) -> None:
    make_executor("local")
    make_executor("demo", heartbeat_at=database_now() - timedelta(days=1))
    assert "Delete…" in seen(as_olga.get("/fleet")).words
    assert "Delete executor demo?" in seen(as_olga.get("/executors/demo/delete")).words
    assert as_olga.post("/executors/demo/delete").headers["Location"] == "/fleet"
    assert [executor.name for executor in Executor.objects.all()] == ["local"]


def test_one_that_is_at_work_stays_and_the_page_says_why(as_olga: Client) -> None:
    make_run(make_job(), executor=make_executor("local"))
    answer = as_olga.post("/executors/local/delete")
    assert answer.status_code == 409
    assert "The agent of executor 'local' still reports. Stop it first" in seen(answer).words


@pytest.mark.parametrize(
    "address",
    ["/executors/local/cordon", "/executors/local/nodes/local-1/cordon", "/executors/local/delete"],
)
def test_who_may_not_is_told_so(as_alice: Client, address: str) -> None:
    make_executor("local")
    assert as_alice.get(address).status_code == 403
    assert as_alice.post(address, {"cordoned": "true"}).status_code == 403


def test_what_is_not_there_has_no_page(as_olga: Client) -> None:
    make_executor("local")
    for address in (
        "/executors/x/cordon",
        "/executors/local/nodes/x/cordon",
        "/executors/x/delete",
        "/queues/x/cordon",
    ):
        assert as_olga.get(address).status_code == 404
