"""Executors and nodes."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.models import Executor, Node
from scheduler.models.clock import database_now
from tests.factories import MEBI, make_executor, make_job, make_node, make_run
from tests.pages.conftest import HTMX
from tests.pages.seen import seen

pytestmark = pytest.mark.django_db


def test_nodes_show_what_they_have_and_what_runs_reserve(as_bob: Client) -> None:
    executor = make_executor(nodes=0, version="0.1.0")
    make_node(executor, name="local-1", memory_enforced_by="cgroup2", resources={"nvidia.com/gpu": 2})
    make_run(make_job(memory_bytes=256 * MEBI), executor=executor)
    words = seen(as_bob.get("/fleet")).words
    assert "1 executor, 1 node" in words
    assert "local healthy" in words
    assert (
        "0.1 of 2 CPU, 256Mi of 1Gi ready local 1 0.1 of 2 256Mi of 1Gi nvidia.com/gpu 2 – cgroup2" in words
    )


def test_categories_are_told_by_what_becomes_of_remains(as_bob: Client) -> None:
    make_executor(
        categories=[{"name": "oom", "disposition": "Delete"}, {"name": "bug", "disposition": "Retain"}]
    )
    assert "2 0 oom bug kubernetes.io/hostname" in seen(as_bob.get("/fleet")).words


def test_an_executor_that_is_late_or_silent_is_told_with_what_follows(as_bob: Client) -> None:
    executor = make_executor()
    make_run(executor=executor)
    Executor.objects.update(heartbeat_at=database_now() - timedelta(minutes=4))
    words = seen(as_bob.get("/fleet")).words
    assert "local late 4 m ago" in words
    assert (
        "local has not called for 4 m. At 1 h 00 m 00 s its one lease expires, and the run fails as internal/lease-expired."
        in words
    )

    Executor.objects.update(heartbeat_at=database_now() - timedelta(hours=2))
    words = seen(as_bob.get("/fleet")).words
    assert "1 silent" in words
    assert "local has not called for 1 h 00 m 00 s or longer: its nodes do not count" in words


def test_what_an_executor_cannot_do_is_told_with_the_fix(as_bob: Client) -> None:
    make_executor(tracked_node_labels=["zone"], clock_skew_seconds=-12.5)
    Node.objects.update(notes=["The image is ignored."], schedulable=False)
    words = seen(as_bob.get("/fleet")).words
    assert "local does not track kubernetes.io/hostname, so avoidSameNode cannot work there." in words
    assert "The clock of local is 12 s behind the database's." in words
    assert "local-1, local-2: The image is ignored." in words
    assert "2 closed" in words
    assert "12 s behind" in words


def test_what_nodes_say_about_themselves_is_no_warning(as_bob: Client) -> None:
    make_executor(clock_skew_seconds=-0.02)
    Node.objects.update(notes=["Each run has a user of its own."])
    answer = as_bob.get("/fleet")
    assert "local-1, local-2: Each run has a user of its own." in seen(answer).words
    assert "#s-warn" not in answer.content.decode()
    assert "its clock in step" in seen(answer).words


def test_the_category_that_tack_reports_itself_is_listed(as_bob: Client) -> None:
    make_executor()
    words = seen(as_bob.get("/fleet")).words
    assert "there is internal, which Tack reports itself: job-creation-failed, pod-missing" in words


def test_without_executors_the_page_says_how_one_joins(as_bob: Client) -> None:
    assert "No executor has called yet Jobs wait until one does." in seen(as_bob.get("/fleet")).words


def test_the_refreshed_part_is_a_part_of_its_own(as_bob: Client) -> None:
    make_executor()
    part = as_bob.get("/fleet", headers=HTMX)
    assert part.content.strip().startswith(b'<div id="live"')
    assert "HX-Request" in part.headers["Vary"]


@pytest.mark.parametrize("nodes", [1, 50])
def test_the_number_of_queries_does_not_grow_with_the_nodes(
    as_bob: Client, nodes: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_executor(nodes=nodes)
    with django_assert_num_queries(9):
        as_bob.get("/fleet")
